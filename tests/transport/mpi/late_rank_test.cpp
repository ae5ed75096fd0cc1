// SPDX-License-Identifier: Apache-2.0
//
// A rank that stops in the middle of arriving. There is no orderly end after that.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/endpoint.h"

#include "tests/transport/mpi/on_rank_0.h"

namespace lockstep::transport {
namespace {

TEST(MpiLateRank, IsWaitedForUntilTheDeadline) {
  EXPECT_THROW(make_mpi_endpoint({.start_timeout = std::chrono::milliseconds(500)}), Timeout);
}

// The first thing that an endpoint does with the others, and nothing after it.
[[noreturn]] void arrive_and_stop() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (true) ::pause();
}

}  // namespace
}  // namespace lockstep::transport

int main(int argc, char** argv) {
  lockstep::transport::run_tests_on_rank_0(argc, argv, lockstep::transport::arrive_and_stop);
}
