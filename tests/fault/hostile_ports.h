// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::test {

// A port of ours on this host, in use, that strangers may attack.
class AttackedPort {
 public:
  virtual ~AttackedPort() = default;

  virtual transport::Address address() const = 0;
  // Of somebody who knows the secret.
  virtual transport::Credentials welcome() const = 0;
  // Those for whom the port is there come, and get what they came for. To be called once.
  virtual void expect_the_honest_are_served() = 0;
};

std::unique_ptr<AttackedPort> make_rendezvous_port();
// The same with TLS: who is welcome has a certificate.
std::unique_ptr<AttackedPort> make_tls_port();
// Rank 0 of three while the world connects over tcp: rank 1 is there, rank 2 comes when the honest do.
std::unique_ptr<AttackedPort> make_rank_port();
// The same over shared memory: an abstract Unix socket, which every process of this host can reach.
std::unique_ptr<AttackedPort> make_shm_port();
std::unique_ptr<AttackedPort> make_coordinator_port();
// Where rank 0 of three awaits rank 2 when the benchmark streams over plain sockets.
std::unique_ptr<AttackedPort> make_bench_port();

}  // namespace lockstep::test
