// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/lr_schedule.h"

#include <gtest/gtest.h>

namespace lockstep::spec {
namespace {

constexpr std::int64_t kTotal = 100;

double factor(std::int64_t step, const LrScheduler& scheduler) {
  return lr_at(step, scheduler, {.lr = 2.0}, kTotal) / 2.0;
}

TEST(LrAt, RisesInEqualParts) {
  const LrScheduler scheduler = {.warmup_steps = 4, .decay_type = DecayType::constant};
  for (int step = 0; step <= 4; ++step) EXPECT_DOUBLE_EQ(factor(step, scheduler), (step + 1) / 5.0);
  EXPECT_EQ(factor(5, scheduler), 1.0);
  EXPECT_EQ(factor(kTotal + 5, scheduler), 1.0);
}

TEST(LrAt, FallsLinearlyFromTheEndOfTheWarmUp) {
  const LrScheduler scheduler = {.warmup_steps = 20, .decay_type = DecayType::linear, .min_lr_factor = 0.2};
  EXPECT_EQ(factor(20, scheduler), 1.0);
  EXPECT_DOUBLE_EQ(factor(60, scheduler), 0.6);
  EXPECT_DOUBLE_EQ(factor(99, scheduler), 0.2 + 0.8 / 80);
  EXPECT_DOUBLE_EQ(factor(100, scheduler), 0.2);
  EXPECT_DOUBLE_EQ(factor(1000, scheduler), 0.2);
}

TEST(LrAt, FallsAsACosine) {
  const LrScheduler scheduler = {.warmup_steps = 0, .decay_type = DecayType::cosine, .min_lr_factor = 0.0};
  EXPECT_EQ(factor(0, scheduler), 1.0);
  EXPECT_NEAR(factor(25, scheduler), 0.85355339, 1e-8);
  EXPECT_NEAR(factor(50, scheduler), 0.5, 1e-15);
  EXPECT_NEAR(factor(100, scheduler), 0.0, 1e-15);
}

TEST(LrAt, StaysAndThenFalls) {
  LrScheduler scheduler = {.warmup_steps = 10, .decay_type = DecayType::wsd, .min_lr_factor = 0.0};
  EXPECT_EQ(factor(90, scheduler), 1.0);
  EXPECT_DOUBLE_EQ(factor(95, scheduler), 0.5);
  scheduler.decay_ratio = 0.4;
  EXPECT_EQ(factor(60, scheduler), 1.0);
  EXPECT_DOUBLE_EQ(factor(80, scheduler), 0.5);
}

TEST(LrAt, NeverFallsInsideTheWarmUp) {
  const LrScheduler scheduler = {
      .warmup_steps = 80, .decay_type = DecayType::linear, .decay_ratio = 0.5, .min_lr_factor = 0.0};
  EXPECT_EQ(factor(80, scheduler), 1.0);
  EXPECT_DOUBLE_EQ(factor(90, scheduler), 0.5);
}

TEST(LrAt, SurvivesRunsOfNothingButWarmUp) {
  const LrScheduler scheduler = {.warmup_steps = 100, .decay_type = DecayType::cosine};
  EXPECT_DOUBLE_EQ(factor(99, scheduler), 100.0 / 101.0);
  EXPECT_EQ(lr_at(0, {}, {.lr = 3.0}, 1), 3.0);
}

}  // namespace
}  // namespace lockstep::spec
