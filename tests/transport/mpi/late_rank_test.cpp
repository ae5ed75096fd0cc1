// SPDX-License-Identifier: Apache-2.0
//
// A rank that stops in the middle of arriving. There is no orderly end after that, so rank 0 ends the job.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/endpoint.h"

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
  int level = 0;
  int rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) lockstep::transport::arrive_and_stop();
  testing::InitGoogleTest(&argc, argv);
  MPI_Abort(MPI_COMM_WORLD, RUN_ALL_TESTS());
}
