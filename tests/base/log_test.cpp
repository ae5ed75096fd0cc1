// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::log {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// How a child process ended that did `what` with its own standard error.
int status_of_child(const std::function<void()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    what();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// What `what` writes to standard error.
std::string written(const std::function<void()>& what) {
  testing::internal::CaptureStderr();
  what();
  return testing::internal::GetCapturedStderr();
}

void log_a_little() {
  for (int i = 0; i < 100; ++i) error("a line that nobody reads");
}

TEST(Log, WritesTimeLevelAndMessage) {
  EXPECT_THAT(written([] { warning("the disk is full"); }),
              ContainsRegex("^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\\.[0-9]+ W the disk is full\n$"));
}

TEST(Log, ShowsTheRankOnceItIsKnown) {
  const std::string lines = written([] {
    set_rank(3);
    info("hello");
    set_rank(-1);
    info("goodbye");
  });
  EXPECT_THAT(lines, HasSubstr(" rank 3 I hello\n"));
  EXPECT_THAT(lines, ContainsRegex("[0-9] I goodbye\n"));
}

TEST(Log, DropsWhatIsBelowTheLevel) {
  const std::string lines = written([] {
    set_level(Level::warning);
    debug("one");
    info("two");
    warning("three");
    error("four");
    set_level(Level::info);
  });
  EXPECT_THAT(lines, Not(HasSubstr("one")));
  EXPECT_THAT(lines, Not(HasSubstr("two")));
  EXPECT_THAT(lines, HasSubstr("three"));
  EXPECT_THAT(lines, HasSubstr("four"));
}

TEST(Log, TakesMessagesAsTheyAre) {
  EXPECT_THAT(written([] { info("100% {} %s {0} \\n"); }), HasSubstr("I 100% {} %s {0} \\n\n"));
}

TEST(Log, SurvivesAClosedStream) {
  EXPECT_EQ(status_of_child([] {
              close(STDERR_FILENO);
              log_a_little();
            }),
            0);
}

TEST(Log, SurvivesAPipeWhoseReaderIsGone) {
  EXPECT_EQ(status_of_child([] {
              std::array<int, 2> ends{};
              if (pipe(ends.data()) != 0) _exit(1);
              close(ends[0]);
              dup2(ends[1], STDERR_FILENO);
              std::signal(SIGPIPE, SIG_DFL);
              log_a_little();
            }),
            0);
}

TEST(Log, LeavesASignalThatIsNotItsOwn) {
  EXPECT_EQ(status_of_child([] {
              sigset_t pipe_signal;
              sigemptyset(&pipe_signal);
              sigaddset(&pipe_signal, SIGPIPE);
              pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
              raise(SIGPIPE);
              close(STDERR_FILENO);
              log_a_little();
              sigset_t pending;
              sigpending(&pending);
              if (sigismember(&pending, SIGPIPE) != 1) _exit(1);
            }),
            0);
}

TEST(Log, SurvivesAFullDevice) {
  EXPECT_EQ(status_of_child([] {
              const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
              if (full < 0) _exit(1);
              dup2(full, STDERR_FILENO);
              log_a_little();
            }),
            0);
}

TEST(Log, LosesLinesThatAFullPipeCannotTake) {
  EXPECT_EQ(status_of_child([] {
              std::array<int, 2> ends{};
              if (pipe2(ends.data(), O_NONBLOCK) != 0) _exit(1);
              const std::array<char, 4096> filling{};
              while (write(ends[1], filling.data(), filling.size()) > 0) {
              }
              if (fcntl(ends[1], F_SETFL, 0) != 0) _exit(1);
              dup2(ends[1], STDERR_FILENO);
              error("this must not wait for a reader");
            }),
            0);
}

TEST(RateLimit, LetsTheFirstThroughAndCountsTheRest) {
  RateLimit limit(1h);
  std::uint64_t suppressed = 99;
  EXPECT_TRUE(limit.allow(suppressed));
  EXPECT_EQ(suppressed, 0U);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.allow(suppressed));
}

TEST(RateLimit, TellsHowManyItRefused) {
  RateLimit limit(2ms);
  std::uint64_t suppressed = 0;
  ASSERT_TRUE(limit.allow(suppressed));
  std::uint64_t refused = 0;
  while (!limit.allow(suppressed)) {
    ++refused;
    std::this_thread::sleep_for(100us);
  }
  EXPECT_EQ(suppressed, refused);
}

TEST(RateLimit, WithoutIntervalRefusesNothing) {
  RateLimit limit(0ns);
  std::uint64_t suppressed = 0;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limit.allow(suppressed));
  EXPECT_EQ(suppressed, 0U);
}

TEST(RateLimit, OfForeverLetsOneThrough) {
  RateLimit limit(std::chrono::nanoseconds::max());
  std::uint64_t suppressed = 0;
  EXPECT_TRUE(limit.allow(suppressed));
  EXPECT_FALSE(limit.allow(suppressed));
}

TEST(RateLimit, LetsOneThroughWhenManyThreadsAsk) {
  RateLimit limit(1h);
  std::atomic<int> allowed = 0;
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        std::uint64_t suppressed = 0;
        for (int ask = 0; ask < 1000; ++ask) allowed += limit.allow(suppressed) ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(allowed, 1);
}

}  // namespace
}  // namespace lockstep::log
