// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"
#include "lockstep/transport/connect/secret.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// A process among those of one host that share memory. All ranks give the same world, run, generation and
// secret.
struct ShmOptions {
  Rank rank = 0;
  int world = 1;
  std::string run;  // at most 64 bytes of [A-Za-z0-9._-]; also names the sockets that ranks meet at
  std::uint64_t generation = 0;
  Secret secret = {};
  Deadline deadline = Deadline::after(std::chrono::seconds(30));  // for everybody to be there
  std::stop_token stop = {};                                      // to give up before that, with Aborted
};

// Meets all ranks and shares memory with them. UsageError when this rank is already there or memory is short,
// Timeout naming who did not come, Aborted when the caller is to stop, AuthenticationError or DataError when
// somebody who came is not one of us.
std::unique_ptr<Endpoint> connect_shm(const ShmOptions& options);

}  // namespace lockstep::transport
