// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stop_token>
#include <string_view>

#include "lockstep/comm/communicator.h"
#include "lockstep/rendezvous/placement.h"

namespace lockstep::comm {

// What carries messages between ranks.
enum class Carrier {
  automatic,  // shm between ranks of one host, tcp between hosts
  shm,        // all ranks must be on one host
  tcp,        // also between ranks of one host
  mpi         // started by mpirun; found and connected by MPI itself
};
std::string_view name_of(Carrier carrier);
Carrier parse_carrier(std::string_view name);  // UsageError listing the accepted names

struct ConnectOptions {
  Carrier carrier = Carrier::automatic;
  int tcp_streams = 0;  // connections per peer; 0: one on loopback, two otherwise
  GroupSettings group = {};
  std::stop_token stop = {};  // to give up connecting, with Aborted; not over MPI
};

// Meets the other ranks of the run and connects to all of them: the communicator of the world. The secret and
// the certificates come from the environment (docs/launching.md); so does the link model, if
// LOCKSTEP_LINK_MODEL names its file. Errors as rendezvous(), as load_link_model(), and as the transports'.
Communicator connect(const rendezvous::Placement& placement, const ConnectOptions& options = {});

// The same with everything from the environment, as torchrun, Slurm, Open MPI or `lockstep launch` set it.
Communicator connect_from_environment(const ConnectOptions& options = {});

// The model in the file that LOCKSTEP_LINK_MODEL names; `otherwise` when it names none. Errors as
// load_link_model().
LinkModel links_from_environment(const LinkModel& otherwise = {});

}  // namespace lockstep::comm
