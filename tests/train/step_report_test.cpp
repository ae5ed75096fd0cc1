// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_report.h"

#include <limits>

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

const StepReport kStep = {.step = 8,
                          .loss = 2.5,
                          .gradient_norm = 1.5,
                          .learning_rate = 0.01,
                          .loss_scale = 4096,
                          .seconds = 0.5,
                          .tokens = 640};

LossScale fp16_scale() {
  spec::Training training;
  training.dtype = DType::fp16;
  training.initial_loss_scale = 4096;
  training.loss_scale_window = 10;
  return LossScale(training);
}

TEST(StepReport, MovesTheRunOn) {
  const checkpoint::Progress before = {.step = 7, .bad_steps = 2, .bad_in_a_row = 1, .loss = 3};
  const Reached reached =
      reached_with(kStep, {.progress = before, .loss_scale = fp16_scale(), .samples_per_step = 20});
  EXPECT_EQ(reached.progress, (checkpoint::Progress{.step = 8,
                                                    .data_position = 160,
                                                    .bad_steps = 2,
                                                    .bad_in_a_row = 0,
                                                    .loss_scale = 4096,
                                                    .good_steps = 1,
                                                    .loss = 2.5}));
}

TEST(StepReport, ASkippedStepCountsUnlessItFindsTheLossScale) {
  const checkpoint::Progress before = {.step = 7, .bad_steps = 2, .bad_in_a_row = 1};
  StepReport skipped = kStep;
  skipped.updated = false;
  const auto after = [&](const LossScale& scale) {
    return reached_with(skipped, {.progress = before, .loss_scale = scale, .samples_per_step = 20}).progress;
  };
  EXPECT_EQ(after(fp16_scale()).bad_steps, 3);
  EXPECT_EQ(after(fp16_scale()).bad_in_a_row, 1);
  EXPECT_EQ(after(fp16_scale()).loss_scale, 2048);
  EXPECT_EQ(after(LossScale(spec::Training())).bad_in_a_row, 2) << "there is no scale to find";
  skipped.loss = std::numeric_limits<double>::infinity();
  EXPECT_EQ(after(fp16_scale()).bad_in_a_row, 2) << "the scale cannot be the cause";
}

TEST(StepReport, CanBeToldAgain) {
  const checkpoint::Progress before = {.step = 7};
  for (const bool updated : {true, false}) {
    StepReport report = kStep;
    report.updated = updated;
    const StepReport again =
        report_of(
            reached_with(report, {.progress = before, .loss_scale = fp16_scale(), .samples_per_step = 20}),
            640)
            .value();
    EXPECT_EQ(again.step, 8);
    EXPECT_EQ(again.loss, 2.5);
    EXPECT_EQ(again.gradient_norm, 1.5);
    EXPECT_EQ(again.learning_rate, 0.01);
    EXPECT_EQ(again.loss_scale, 4096);
    EXPECT_EQ(again.updated, updated);
    EXPECT_EQ(again.seconds, 0.5);
    EXPECT_EQ(again.tokens, 640);
    EXPECT_FALSE(again.times);
  }
}

TEST(StepReport, OfAStepThatNobodyKnowsIsNotToldAgain) {
  EXPECT_FALSE(report_of(Reached(), 640));
  EXPECT_FALSE(report_of({.progress = {.step = 8, .loss = 2.5}, .last = std::nullopt}, 640));
}

}  // namespace
}  // namespace lockstep::train
