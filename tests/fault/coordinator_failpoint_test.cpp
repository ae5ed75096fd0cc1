// SPDX-License-Identifier: Apache-2.0
//
// The launcher of a run, whose coordinator is in it, that dies, stops or fails at every failpoint of it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/disturbed_run.h"
#include "tests/support/failpoints.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> points_of_the_coordinator() {
  std::vector<std::string> points = test::swept_failpoints("elastic.");
  std::erase_if(points, [](const std::string& point) { return !is_of_the_coordinator(point); });
  return points;
}

class CoordinatorFailpoint : public DisturbedRun, public ::testing::WithParamInterface<std::string> {
 protected:
  static const std::string& point() { return GetParam(); }

  Program start(const std::string& run, const std::string& action, const Flags& more = {}) const {
    // A decision for the third of three workers, in the fourth step; the first generation.
    const std::string which = point() == "elastic.decision.made" ? "hit=12," : "";
    const std::string rule = fmt::format("{}@{}once={}:{}", point(), which, reached(run), action);
    Flags flags = {"--workers", "3", "--parallelism.zero_stage", "2"};
    flags.insert(flags.end(), more.begin(), more.end());
    return Program(flags_of(run, flags), {{"LOCKSTEP_FAILPOINTS", rule}});
  }

  void wait_until_workers_are_gone(const std::string& run) const {
    for (int i = 0; i < 1000 && !workers_of(run).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(workers_of(run).empty());
  }

  static bool is_stopped(pid_t process) {
    const std::string status = read_file(fmt::format("/proc/{}/status", process));
    return status.find("State:\tT") != std::string::npos;
  }
};

TEST_P(CoordinatorFailpoint, KilledItTakesTheWorkersWithIt) {
  train_whole();
  const Finished killed = start("killed", "kill").finish();
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.error_output;
  wait_until_workers_are_gone("killed");
  expect_undisturbed("killed", run_program(flags_of("killed", {"--workers", "2", "--resume", "auto"})));
}

TEST_P(CoordinatorFailpoint, StoppedItGoesOnLater) {
  train_whole();
  Program program = start("stopped", "stop", {"--elastic.beat_timeout_seconds", "0.5"});
  for (int i = 0; i < 3000 && !is_stopped(program.pid()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(is_stopped(program.pid()));
  // Longer than workers may be silent: while it slept it has heard nobody.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  program.signal(SIGCONT);
  const Finished finished = program.finish();
  expect_undisturbed("stopped", finished);
  EXPECT_THAT(finished.error_output, Not(HasSubstr("starts again")));
}

TEST_P(CoordinatorFailpoint, FailedItEndsTheRunWhichCanBeResumed) {
  train_whole();
  const Finished failed = start("failed", "throw").finish();
  EXPECT_EQ(failed.exit_code, 70) << failed.error_output;
  EXPECT_THAT(failed.error_output,
              HasSubstr(fmt::format("lockstep: failpoint {} was told to throw", point())));
  EXPECT_TRUE(workers_of("failed").empty());
  expect_undisturbed("failed", run_program(flags_of("failed", {"--workers", "2", "--resume", "auto"})));
}

INSTANTIATE_TEST_SUITE_P(All, CoordinatorFailpoint, ::testing::ValuesIn(points_of_the_coordinator()),
                         [](const auto& test) { return test::test_name_of(test.param); });

}  // namespace
}  // namespace lockstep::testing
