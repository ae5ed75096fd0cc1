// SPDX-License-Identifier: Apache-2.0
//
// All ranks of MPI_COMM_WORLD as an endpoint, on whatever network MPI supports (docs/decisions/0003). What
// MPI cannot do shows here: it has no descriptor to wait on, so a waiting rank looks again every 0.2 to 1 ms;
// and it does not tell of a peer that dies (mpirun then ends the whole job), so alive() knows only of peers
// that have left in order or that MPI reports an error for.
#pragma once

#include <chrono>
#include <memory>

#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

struct MpiOptions {
  std::chrono::milliseconds start_timeout{60'000};  // for all ranks to arrive
  // How long a rank that leaves in order waits for the others to leave too, as MPI asks. After a failure:
  // 5 s.
  std::chrono::milliseconds farewell_timeout{600'000};
};

// Was this build made with MPI?
bool mpi_available();

// To be called by every rank. Initializes MPI (MPI_THREAD_SERIALIZED) unless that has been done, and then
// finalizes it when the endpoint is destroyed. Timeout when not all ranks arrive. UsageError when the build
// has no MPI, or MPI was finalized or initialized without threads.
std::unique_ptr<Endpoint> make_mpi_endpoint(const MpiOptions& options = {});

}  // namespace lockstep::transport
