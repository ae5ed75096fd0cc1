// SPDX-License-Identifier: Apache-2.0
//
// Ranks of a benchmark whose rendezvous fails. The crew starts its own program, so this one is its own agent.
#include <csignal>
#include <iostream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/support/error_of.h"
#include "tests/support/random_draws.h"

namespace lockstep::cli {
namespace {

TEST(BenchStart, AServerThatFailsIsAnError) {
  rendezvous::SignalInbox signals{SIGUSR2};
  // The secret, and a nonce for the handshake with each rank; the server's own is the next.
  test::random_draws_left = 3;
  EXPECT_THAT(test::error_of<Error>([&] { start_process_crew({.ranks = 2}, signals); }),
              testing::HasSubstr("the system gives no random bytes"));
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "bench") {
    return lockstep::cli::run_bench({argv + 2, argv + argc}, std::cout);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
