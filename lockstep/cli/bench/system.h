// SPDX-License-Identifier: Apache-2.0
//
// What can be measured: our communicator, its opponents, and the parts that the selector's model is made of.
//   lockstep   a collective of the communicator
//   gloo       gloo::allreduce by its ring over TCP on 127.0.0.1
//   mpi        MPI_Allreduce; runs in processes of its own (bench/collectives/mpi_agent.cpp)
//   memcpy     each rank copies memory_limit_bytes() from one registered buffer to another, all at once: by
//              memcpy or past the caches, whichever is quicker here
//   sockets    each rank streams to the next one over a plain TCP socket on 127.0.0.1, all at once: bytes
//              times bus_factor(), what the busiest link must carry
//   ping       a message of `bytes` from rank 0 to rank 1 and back; one iteration is half of that
//   stream     messages of `bytes` from rank 0 to rank 1
//   add        each rank adds `bytes` to `bytes`, all ranks at once
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "lockstep/cli/bench/protocol.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::cli {

// One prepared case on one rank. All ranks call the same members in the same order.
class Trial {
 public:
  virtual ~Trial() = default;

  // Puts this rank's values into the buffers.
  virtual void fill() = 0;
  // Was the operation right, once, after fill()?
  virtual bool is_correct() const = 0;
  // Values that stay the same however often the operation runs.
  virtual void clear() = 0;

  virtual void run_once() = 0;
  // No rank returns before every rank has called.
  virtual void meet() = 0;
};

// Makes the trials of one system. UsageError when the case cannot be measured here.
using TrialFactory = std::function<std::unique_ptr<Trial>(const Case& what)>;

TrialFactory lockstep_trials(comm::Communicator communicator);
TrialFactory memcpy_trials(comm::Communicator communicator);
TrialFactory socket_trials(comm::Communicator communicator);
TrialFactory link_trials(comm::Communicator communicator);  // ping, stream, add

// The ranks connect when the first trial is made, and meet by files in the folder `store` (all give the
// same), which is its owner's to remove. In a build without gloo every trial is a UsageError.
TrialFactory gloo_trials(Rank rank, int ranks, std::filesystem::path store);

}  // namespace lockstep::cli
