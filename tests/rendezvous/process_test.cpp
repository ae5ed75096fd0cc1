// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/process.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::rendezvous {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;

std::atomic<bool> children_stop{false};

// Between fork and exec, as on a disk that does not answer.
void stop_child() {
  if (children_stop) ::raise(SIGSTOP);
}

SpawnOptions shell(const char* script) {
  const Environment environment = process_environment();
  return {.program = find_program("sh", environment),
          .arguments = {"sh", "-c", script},
          .environment = environment};
}

TEST(ChildProcess, OneThatNeverRunsIsGivenUpAtTheDeadline) {
  ASSERT_EQ(::pthread_atfork(nullptr, nullptr, stop_child), 0);
  SpawnOptions options = shell("exit 0");
  options.start_timeout = 50ms;
  children_stop = true;
  EXPECT_THAT(error_of<UsageError>([&] { const ChildProcess child(options); }),
              HasSubstr("it did not run within 0.1 s"));
  children_stop = false;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";

  ChildProcess child(shell("exit 3"));
  while (!child.poll()) {
  }
  EXPECT_EQ(child.poll()->code, 3);
}

}  // namespace
}  // namespace lockstep::rendezvous
