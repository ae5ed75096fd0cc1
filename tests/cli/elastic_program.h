// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {

using Flags = std::vector<std::string>;

// Runs of the tiny model that are disturbed, and the run "whole" that never was.
class ElasticProgram : public TrainProgram {
 protected:
  explicit ElasticProgram(int steps = 150) : steps_(steps) {}

  Flags flags_of(const std::string& run, const Flags& more) const {
    Flags flags = {"train",
                   run_,
                   "--training.steps",
                   std::to_string(steps_),
                   "--validation.freq",
                   std::to_string(steps_ / 3),
                   "--metrics.log_freq",
                   std::to_string(steps_ / 3),
                   "--parallelism.lanes",
                   "4",
                   "--training.global_batch_size",
                   "16",
                   "--training.threads",  // more than there are cores wait for each other
                   "1",
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

  // Until the run has said this so often.
  void wait_for(const std::string& run, const std::string& line, std::size_t times = 1) const {
    const auto said = [&] {
      std::size_t count = 0;
      const std::string log = read_file(folder_.path(run) + "/log.txt");
      for (std::size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++count;
      return count;
    };
    for (int i = 0; i < 3000 && said() < times; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_GE(said(), times) << line;
  }

  // Of the newest checkpoint; -1 when there is none.
  std::int64_t newest_step(const std::string& run) const {
    const std::string listed = run_program({"checkpoint", "ls", folder_.path(run)}).output;
    std::istringstream newest(listed.substr(std::min(listed.size(), listed.find('*') + 1)));
    std::int64_t step = -1;
    return newest >> step ? step : -1;
  }

  // The worker that has this rank dies at this point of this step, once.
  Environment dies_at(const std::string& point, int rank, int step, const std::string& run) const {
    return {{"LOCKSTEP_FAILPOINTS",
             fmt::format("{}@rank={},step={},once={}.died:kill", point, rank, step, folder_.path(run))}};
  }

  void train_whole(const Flags& more = {}) {
    const Finished finished = run_program(flags_of("whole", more));
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  }

  // As the run that was never disturbed: each step once, with the same numbers; and nothing is left behind.
  void expect_whole(const std::string& run, const Finished& finished) {
    ASSERT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    expect_same_steps(run, "whole");
    EXPECT_EQ(hash_of(run), hash_of("whole"));
    EXPECT_THAT(finished.output,
                ::testing::HasSubstr(fmt::format("done after {} of {} steps", steps_, steps_)));
    EXPECT_TRUE(workers_of(run).empty());
    EXPECT_FALSE(std::filesystem::exists(folder_.path(run) + "/lock"));
  }

 private:
  int steps_;
};

}  // namespace lockstep::testing
