// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/loss_scale.h"

#include <gtest/gtest.h>

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
