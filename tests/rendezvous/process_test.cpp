// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/process.h"

#include <atomic>
#include <chrono>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/rendezvous/signal_inbox.h"

#include "tests/support/error_of.h"

namespace lockstep::rendezvous {
namespace {

using test::error_of;
using ::testing::HasSubstr;

std::atomic<pid_t> parent_to_end{0};

// Between fork and exec, as on a disk that does not answer. Ends the parent's wait, as a user does who has
// waited long enough.
void stop_child() {
  const pid_t parent = parent_to_end;
  if (parent == 0) return;
  ::kill(parent, SIGUSR1);
  ::kill(parent, SIGTERM);
  ::raise(SIGSTOP);
}

// While it lives, programs are started but do not run. The signals that come for it end nobody.
class DeadDisk {
 public:
  DeadDisk() {
    [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, stop_child);
    parent_to_end = ::getpid();
  }
  ~DeadDisk() {
    parent_to_end = 0;
    while (signals_.take() != 0) {
    }
  }
  DeadDisk(const DeadDisk&) = delete;
  DeadDisk& operator=(const DeadDisk&) = delete;

 private:
  SignalInbox signals_{SIGTERM, SIGUSR1};
};

TEST(ChildProcess, OneThatDoesNotRunIsGivenUpWhenASignalAsksForIt) {
  const Environment environment = process_environment();
  SpawnOptions options{.program = find_program("sh", environment),
                       .arguments = {"sh", "-c", "exit 3"},
                       .environment = environment};
  const DeadDisk disk;
  const SignalInbox ends({SIGTERM});
  options.give_up_fd = ends.fd();
  EXPECT_THAT(error_of<UsageError>([&] { const ChildProcess child(options); }),
              HasSubstr("it was given up before it ran"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it is reaped";
}

TEST(ChildProcess, OneThatRunsIsNotGivenUp) {
  const SignalInbox ends({SIGTERM});
  ::raise(SIGTERM);
  const Environment environment = process_environment();
  ChildProcess child({.program = find_program("sh", environment),
                      .arguments = {"sh", "-c", "exit 3"},
                      .environment = environment,
                      .give_up_fd = ends.fd(),
                      .give_up_after = std::chrono::minutes(1)});
  while (!child.poll()) {
  }
  EXPECT_EQ(child.poll()->code, 3);
  EXPECT_EQ(SignalInbox({SIGTERM}).take(), SIGTERM) << "who waits for it still gets it";
}

TEST(LaunchOnADeadDisk, EndsWithASignal) {
  LaunchOptions options;
  options.command = {"sh", "-c", "exit 0"};
  options.workers = 2;
  options.environment = process_environment();
  options.grace = std::chrono::milliseconds(100);
  const DeadDisk disk;
  EXPECT_THAT(error_of<UsageError>([&] { launch(options); }),
              HasSubstr("does the disk that holds it answer?"));
}

}  // namespace
}  // namespace lockstep::rendezvous
