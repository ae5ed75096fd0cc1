// SPDX-License-Identifier: Apache-2.0
//
// A run with a worker that is slower than the others.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/elastic_program.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t times = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

class Straggler : public ElasticProgram {
 protected:
  Straggler() : ElasticProgram(60) {}

  Flags flags_of(const std::string& run, const Flags& more) const {
    Flags flags = ElasticProgram::flags_of(run, {"--parallelism.lanes", "8", "--training.threads", "1"});
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  void train_whole() { ASSERT_EQ(run_program(flags_of("whole", {})).exit_code, 0); }

  static Flags watched(const Flags& more) {
    Flags flags = {"--workers",
                   "3",
                   "--elastic.straggler_freq",
                   "3",
                   "--elastic.straggler_patience",
                   "2",
                   "--elastic.evict_stragglers",
                   "true"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
};

TEST_F(Straggler, IsNamedAndRelievedInEveryGeneration) {
  train_whole();
  Program program(
      flags_of("slow", watched({"--parallelism.rebalance_freq", "10", "--elastic.min_workers", "3"})),
      {{"LOCKSTEP_FAILPOINTS", "train.forward@rank=1:sleep(5)"}});
  wait_for_steps("slow", 15);
  ::kill(workers_of("slow").front(), SIGKILL);
  const Finished finished = program.finish();
  expect_whole("slow", finished);
  EXPECT_THAT(finished.output,
              ContainsRegex("warning: rank 1 on .* takes .* times as long as the others, most "
                            "of all in forward, for 6 steps"));
  EXPECT_THAT(finished.output, Not(HasSubstr("it has to leave"))) << "there are no more than min_workers";
  EXPECT_GE(times_in(finished.output, "lanes of the workers from now on"), 2U) << finished.output;
  EXPECT_THAT(read_file(folder_.path("slow") + "/metrics.jsonl"), HasSubstr("\"speed/slowest_rank\":1"));
}

// Whoever is rank 2 is slow: after the first one the process that takes its place.
TEST_F(Straggler, IsEvictedAndGivenUpWhenItComesBackAsSlow) {
  train_whole();
  const Finished finished =
      run_program(flags_of("evicted", watched({"--elastic.max_restarts", "1"})),
                  {{"LOCKSTEP_FAILPOINTS", "train.step.begun:sleep(50);train.forward@rank=2:sleep(50)"}});
  expect_whole("evicted", finished);
  EXPECT_EQ(times_in(finished.output, "it has to leave"), 2U) << finished.output;
  EXPECT_GE(times_in(finished.output, "2 workers went on after step"), 2U);
  EXPECT_GE(times_in(finished.output, "3 workers went on after step"), 1U);
  EXPECT_THAT(finished.error_output, HasSubstr("this worker leaves the run: rank 2 on "));
  EXPECT_THAT(finished.error_output, HasSubstr("it is given up after 1 restarts within 3600 s"));
}

}  // namespace
}  // namespace lockstep::testing
