// SPDX-License-Identifier: Apache-2.0
//
// Runs in which a bit of a worker's memory changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/elastic_program.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Corruption : public ElasticProgram {
 protected:
  Corruption() : ElasticProgram(9) {}

  void train_whole() { ElasticProgram::train_whole({"--training.threads", "1"}); }

  // A bit changes where the failpoints say, each once.
  Finished train_with(const std::string& run, const std::vector<std::string>& places, Flags flags) {
    std::string rules;
    for (std::size_t i = 0; i < places.size(); ++i) {
      rules += places[i] + ",once=" + folder_.path(run + std::to_string(i)) + ":corrupt(21);";
    }
    flags.insert(flags.end(), {"--elastic.compare_freq", "1", "--training.threads", "1"});
    return run_program(flags_of(run, flags), {{"LOCKSTEP_FAILPOINTS", rules}});
  }
};

TEST_F(Corruption, OfWeightsIsHealedByTheOthers) {
  train_whole();
  for (const char* stage : {"0", "1", "2"}) {
    SCOPED_TRACE(stage);
    const std::string run = std::string("weights") + stage;
    const Finished finished = train_with(run, {"train.applied@rank=1,step=4"},
                                         {"--workers", "3", "--parallelism.zero_stage", stage});
    expect_whole(run, finished);
    EXPECT_THAT(finished.error_output,
                HasSubstr(std::string("after step 4 the weights of rank 1 are not those of the other ranks; "
                                      "this worker ") +
                          (*stage == '0' ? "gets its state from the others"
                                         : "keeps its share of the state, which is as it was written down")));
    EXPECT_THAT(finished.output, HasSubstr("3 workers went on after step 4"));
    EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  }
}

TEST_F(Corruption, OfWhatTheOptimizerRemembersIsHealedByTheOthers) {
  train_whole();
  const Finished finished = train_with("state", {"train.update@rank=2,step=5"},
                                       {"--workers", "3", "--parallelism.zero_stage", "0"});
  expect_whole("state", finished);
  EXPECT_THAT(finished.error_output,
              HasSubstr("after step 5 the weights of rank 2 are not those of the other ranks"));
  EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
}

// On one host nobody has a copy of a share; its journal says that a bit has changed.
TEST_F(Corruption, OfAShareGoesBackToACheckpoint) {
  train_whole();
  for (const char* stage : {"1", "3"}) {
    SCOPED_TRACE(stage);
    const std::string run = std::string("share") + stage;
    const Finished finished =
        train_with(run, {"train.update@rank=1,step=7"},
                   {"--workers", "4", "--parallelism.zero_stage", stage, "--checkpoint.interval", "3"});
    expect_whole(run, finished);
    EXPECT_THAT(finished.error_output,
                HasSubstr("after step 7 a bit of the state of rank 1 has changed since it was updated; this "
                          "worker gives nobody its share of the state"));
    EXPECT_THAT(finished.output, Not(HasSubstr("workers went on after step"))) << "from what they remember";
  }
}

TEST_F(Corruption, TwiceEndsTheProcess) {
  train_whole();
  const Finished finished =
      train_with("twice", {"train.applied@rank=1,step=3", "train.applied@rank=1,step=6"}, {"--workers", "3"});
  expect_whole("twice", finished);
  EXPECT_THAT(finished.error_output,
              HasSubstr("this worker leaves the run: after step 6 the weights of rank 1"));
}

}  // namespace
}  // namespace lockstep::testing
