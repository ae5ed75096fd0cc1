// SPDX-License-Identifier: Apache-2.0
//
// A rank that leaves without memory. There is no orderly end after that.
#include <memory>

#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/transport/mpi/endpoint.h"

#include "tests/support/starving.h"
#include "tests/transport/mpi/on_rank_0.h"

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
  lockstep::transport::run_tests_on_rank_0(argc, argv, lockstep::transport::stay_forever);
}
