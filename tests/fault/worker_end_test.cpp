// SPDX-License-Identifier: Apache-2.0
//
// A worker that ends by itself in the middle of a run, in any way but a mistake that it would make again: it
// is started again, the run ends with the bits that it would have had, and the log says how the worker ended.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/disturbed_run.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;

const Flags kLayout = {"--workers", "3", "--parallelism.zero_stage", "1"};

class WorkerEnd : public DisturbedRun {
 protected:
  Program start(const std::string& run, const std::string& action) const {
    const std::string rule = fmt::format("train.forward@rank=1,step=3,once={}:{}", reached(run), action);
    return Program(flags_of(run, kLayout), {{"LOCKSTEP_FAILPOINTS", rule}});
  }
};

// Without having left, a code of success is as bad as any other.
TEST_F(WorkerEnd, ByAnyExitCodeIsNamedAndReplaced) {
  train_whole();
  for (const int code : {0, 3}) {
    SCOPED_TRACE(code);
    const std::string run = fmt::format("exit-{}", code);
    const Finished finished = start(run, fmt::format("exit({})", code)).finish();
    expect_undisturbed(run, finished);
    EXPECT_THAT(
        finished.error_output,
        ContainsRegex(fmt::format("rank 1 \\([^ ]+, pid [0-9]+\\) ended with exit code {} after step 2 was "
                                  "decided; it starts again",
                                  code)));
  }
}

TEST_F(WorkerEnd, ByACrashIsNamedAndReplaced) {
  train_whole();
  Program program = start("crash", "sleep(3000)");  // so that there is somebody to crash
  for (int i = 0; i < 3000 && !std::filesystem::exists(reached("crash")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const std::vector<pid_t> workers = workers_of("crash");
  ASSERT_EQ(workers.size(), 3u);
  ::kill(workers.front(), SIGSEGV);
  const Finished finished = program.finish();
  expect_undisturbed("crash", finished);
  EXPECT_THAT(
      finished.error_output,
      ContainsRegex(fmt::format("rank [0-2] \\([^ ]+, pid {}\\) was killed by signal 11 \\(Segmentation "
                                "fault\\) after step 2 was decided; it starts again",
                                workers.front())));
}

}  // namespace
}  // namespace lockstep::testing
