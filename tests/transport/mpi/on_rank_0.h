// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

namespace lockstep::transport {

// For main(): rank 0 runs the tests and ends the job with their result, for nobody leaves in order. `others`
// is what the other ranks do until then.
[[noreturn]] inline void run_tests_on_rank_0(int argc, char** argv, void (*others)()) {
  int level = MPI_THREAD_SINGLE;
  int rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) others();
  testing::InitGoogleTest(&argc, argv);
  MPI_Abort(MPI_COMM_WORLD, RUN_ALL_TESTS());
  __builtin_unreachable();
}

}  // namespace lockstep::transport
