// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/loss_scale.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/train/run.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

spec::Training in_fp16() {
  spec::Training training;
  training.dtype = DType::fp16;
  training.initial_loss_scale = 64;
  training.loss_scale_window = 3;
  training.min_loss_scale = 16;
  return training;
}

TEST(LossScale, GrowsAfterAWindowOfGoodSteps) {
  LossScale scale(in_fp16());
  for (int step = 0; step < 2; ++step) scale.record(true);
  EXPECT_EQ(scale.value(), 64);
  scale.record(true);
  EXPECT_EQ(scale.value(), 128);
  for (int step = 0; step < 3; ++step) scale.record(true);
  EXPECT_EQ(scale.value(), 256);
}

TEST(LossScale, ABadStepHalvesItAndBeginsTheWindowAnew) {
  LossScale scale(in_fp16());
  for (int step = 0; step < 2; ++step) scale.record(true);
  scale.record(false);
  EXPECT_EQ(scale.value(), 32);
  for (int step = 0; step < 2; ++step) scale.record(true);
  EXPECT_EQ(scale.value(), 32);
  for (int step = 0; step < 3; ++step) scale.record(false);
  EXPECT_EQ(scale.value(), 16) << "never below the least";
}

TEST(LossScale, FallsUntilItIsTheLeast) {
  LossScale scale(in_fp16());
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(scale.can_fall());
    scale.record(false);
  }
  EXPECT_FALSE(scale.can_fall());
  spec::Training training = in_fp16();
  training.loss_scale = 64;
  EXPECT_FALSE(LossScale(training).can_fall());
  training.dtype = DType::bf16;
  training.loss_scale = 0;
  EXPECT_FALSE(LossScale(training).can_fall());
}

class Fp16Run : public ::testing::Test {
 protected:
  RunSummary train(std::vector<std::string> flags) const {
    flags.insert(flags.end(), {"--training.dtype", "fp16", "--training.steps", "100"});
    return run_training(small_run(corpus_, "gpt", flags), comm::Communicator(), {});
  }

  test::TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
};

TEST_F(Fp16Run, FindsItsScaleHoweverLongThatTakes) {
  const RunSummary summary = train({"--training.initial_loss_scale", "1e9", "--training.max_bad_steps", "1"});
  EXPECT_EQ(summary.steps, 100);
  EXPECT_GT(summary.bad_steps, 1);
  EXPECT_LT(summary.bad_steps, 30) << "halvings of the scale until it is below 1";
}

// The first update makes the weights so large that nothing is finite any more, whatever the scale.
TEST_F(Fp16Run, EndsWhenNoScaleHelps) {
  const std::string reason = test::error_of<UsageError>([&] {
    train({"--training.initial_loss_scale", "64", "--optimizer.lr", "1000", "--lr_scheduler.warmup_steps",
           "0"});
  });
  // Step 1 is good. Of the others the loss is not finite either, so that they count though the scale may
  // fall.
  EXPECT_THAT(reason, ::testing::StartsWith("step 11: the gradients of 10 steps in a row were not finite"));
}

TEST(LossScale, IsFixedWhenGivenAndOneInOtherDtypes) {
  spec::Training training = in_fp16();
  training.loss_scale = 8;
  LossScale fixed(training);
  fixed.record(false);
  EXPECT_EQ(fixed.value(), 8);
  training.dtype = DType::bf16;
  EXPECT_EQ(LossScale(training).value(), 1);
}

}  // namespace
}  // namespace lockstep::train
