// SPDX-License-Identifier: Apache-2.0
//
// Runs that lose workers and go on by themselves, as users have them.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Flags = std::vector<std::string>;

class ElasticProgram : public TrainProgram {
 protected:
  Flags flags_of(const std::string& run, const Flags& more) const {
    Flags flags = {"train",
                   run_,
                   "--training.steps",
                   "150",
                   "--validation.freq",
                   "50",
                   "--metrics.log_freq",
                   "50",
                   "--parallelism.lanes",
                   "4",
                   "--training.global_batch_size",
                   "16",
                   "--job.dump_folder",
                   folder_.path(run)};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  std::vector<pid_t> workers_of(const std::string& run) const {
    std::istringstream found(
        run_shell("pgrep -f '[l]ockstep-trainer train.*" + folder_.path(run) + "'").output);
    std::vector<pid_t> workers;
    for (pid_t worker = 0; found >> worker;) workers.push_back(worker);
    return workers;
  }

  std::size_t steps_told(const std::string& run) const {
    return lines_in(read_file(folder_.path(run) + "/metrics.jsonl"));
  }

  void wait_for_steps(const std::string& run, std::size_t count) const {
    for (int i = 0; i < 3000 && steps_told(run) < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_GE(steps_told(run), count);
  }

  // A few more steps than there are.
  void wait_for_more_steps(const std::string& run, std::size_t more = 5) const {
    wait_for_steps(run, steps_told(run) + more);
  }

  std::string hash_of(const std::string& run) const {
    const Finished finished = run_program({"checkpoint", "hash", folder_.path(run)});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return finished.output.substr(0, 32);
  }

  void train_whole(const Flags& more = {}) {
    const Finished finished = run_program(flags_of("whole", more));
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  }

  // As the run that was never disturbed: each step once, with the same numbers; and nothing is left behind.
  void expect_whole(const std::string& run, const Finished& finished) {
    ASSERT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    EXPECT_EQ(steps_of(run), steps_of("whole"));
    EXPECT_EQ(hash_of(run), hash_of("whole"));
    EXPECT_THAT(finished.output, HasSubstr("done after 150 of 150 steps"));
    EXPECT_TRUE(workers_of(run).empty());
    EXPECT_FALSE(std::filesystem::exists(folder_.path(run) + "/lock"));
  }
};

TEST_F(ElasticProgram, EveryWorkerCanBeKilled) {
  train_whole();
  Program program(flags_of("killed", {"--workers", "4"}));
  wait_for_steps("killed", 3);
  // All of the first ones, and some of those that came in their place.
  for (std::size_t i = 0; i < 6; ++i) {
    const std::vector<pid_t> workers = workers_of("killed");
    ASSERT_FALSE(workers.empty());
    ::kill(workers[i % 2 == 0 ? 0 : workers.size() - 1], SIGKILL);
    wait_for_more_steps("killed");
  }
  const Finished finished = program.finish();
  expect_whole("killed", finished);
  EXPECT_THAT(finished.output, HasSubstr("workers went on after step "));
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9 (Killed)"));
  EXPECT_THAT(finished.error_output, HasSubstr("it starts again"));
}

TEST_F(ElasticProgram, AnyShareOfTheStateSurvives) {
  train_whole();
  const Flags layouts[] = {{"--parallelism.zero_stage", "0"},
                           {"--parallelism.zero_stage", "2"},
                           {"--parallelism.zero_stage", "3"},
                           {"--parallelism.pipeline", "2"},
                           {"--parallelism.pipeline", "2", "--parallelism.zero_stage", "3"}};
  for (std::size_t i = 0; i < std::size(layouts); ++i) {
    SCOPED_TRACE(::testing::PrintToString(layouts[i]));
    const std::string run = "layout" + std::to_string(i);
    Flags flags = layouts[i];
    flags.insert(flags.end(), {"--workers", "4"});
    Program program(flags_of(run, flags));
    wait_for_steps(run, 3);
    ::kill(workers_of(run)[i % 4], SIGKILL);
    const Finished finished = program.finish();
    expect_whole(run, finished);
    EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  }
}

TEST_F(ElasticProgram, AFrozenWorkerIsReplaced) {
  train_whole();
  Program program(flags_of("frozen", {"--workers", "3", "--elastic.beat_timeout_seconds", "1"}));
  wait_for_steps("frozen", 3);
  ::kill(workers_of("frozen")[1], SIGSTOP);
  const Finished finished = program.finish();
  expect_whole("frozen", finished);
  EXPECT_THAT(finished.error_output, HasSubstr("nothing was heard of it for 1.0 s"));
}

TEST_F(ElasticProgram, ManyAtOnceComeFromACheckpoint) {
  train_whole();
  Program program(flags_of("many", {"--workers", "4", "--checkpoint.interval", "5"}));
  wait_for_steps("many", 12);
  for (const pid_t worker : workers_of("many")) ::kill(worker, SIGKILL);
  const Finished finished = program.finish();
  expect_whole("many", finished);
  EXPECT_THAT(finished.output, HasSubstr("resumed "));
}

TEST_F(ElasticProgram, TooFewWorkersWaitAndEnd) {
  train_whole();
  Program program(
      flags_of("few", {"--workers", "2", "--elastic.min_workers", "2", "--elastic.max_restarts", "0",
                       "--elastic.join_timeout_seconds", "0.5", "--checkpoint.interval", "5"}));
  wait_for_steps("few", 8);
  ::kill(workers_of("few").back(), SIGKILL);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9 (Killed)"));
  EXPECT_TRUE(workers_of("few").empty());
  expect_whole("few", run_program(flags_of("few", {"--resume", "auto"})));
}

TEST_F(ElasticProgram, AMistakeIsNotTriedAgain) {
  const Finished finished =
      run_program(flags_of("wrong", {"--workers", "2", "--data.train", folder_.path("no")}));
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.error_output, Not(HasSubstr("it starts again")));
  EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
}

TEST_F(ElasticProgram, WithoutElasticityTheFirstFailureEndsTheRun) {
  Program program(flags_of("plain", {"--workers", "2", "--elastic.enabled", "false"}));
  wait_for_steps("plain", 3);
  ::kill(workers_of("plain").back(), SIGKILL);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 137) << finished.error_output;
}

}  // namespace
}  // namespace lockstep::testing
