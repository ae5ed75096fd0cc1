// SPDX-License-Identifier: Apache-2.0
//
// A rank that leaves without memory. There is no orderly end after that, so rank 0 ends the job.
#include <memory>

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "lockstep/transport/mpi/endpoint.h"

#include "tests/support/starving.h"

namespace lockstep::transport {
namespace {

TEST(MpiStarved, ARankCanAlwaysLeave) {
  std::unique_ptr<Endpoint> endpoint = make_mpi_endpoint();
  EXPECT_FALSE(test::with_memory_for(0, [&] { endpoint.reset(); }).threw);
}

[[noreturn]] void stay_forever() {
  const std::unique_ptr<Endpoint> endpoint = make_mpi_endpoint();
  while (true) ::pause();
}

}  // namespace
}  // namespace lockstep::transport

int main(int argc, char** argv) {
  int level = 0;
  int rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) lockstep::transport::stay_forever();
  testing::InitGoogleTest(&argc, argv);
  MPI_Abort(MPI_COMM_WORLD, RUN_ALL_TESTS());
}
