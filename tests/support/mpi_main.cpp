// SPDX-License-Identifier: Apache-2.0
//
// main() of tests that mpirun starts: every process runs all tests, between MPI's beginning and its end.
#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
