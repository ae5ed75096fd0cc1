// SPDX-License-Identifier: Apache-2.0
//
// Ranks of a benchmark whose rendezvous fails. The crew starts its own program, so this one is its own agent.
#include <atomic>
#include <climits>
#include <csignal>
#include <iostream>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/rand.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/support/error_of.h"

namespace {

std::atomic<int> random_draws_left{INT_MAX};

}  // namespace

// Takes the place of the library's, so that the server can fail in the middle of its work.
extern "C" int RAND_bytes(unsigned char* buffer, int count) {
  if (random_draws_left-- <= 0) return 0;
  return RAND_bytes_ex(nullptr, buffer, static_cast<std::size_t>(count), 0);
}

namespace lockstep::cli {
namespace {

TEST(BenchStart, AServerThatFailsIsAnError) {
  rendezvous::SignalInbox signals{SIGUSR2};
  // The secret, and a nonce for the handshake with each rank; the server's own is the next.
  random_draws_left = 3;
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
