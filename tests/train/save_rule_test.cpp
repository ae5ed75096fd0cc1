// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/save_rule.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(SaveRule, ByStepsAndByTime) {
  spec::Checkpoint rule;
  EXPECT_FALSE(is_time_to_save(rule, 100, {.seconds_ago = 1e6}));
  rule.interval = 50;
  EXPECT_TRUE(is_time_to_save(rule, 100, {.step = 50}));
  EXPECT_FALSE(is_time_to_save(rule, 101, {.step = 100, .seconds_ago = 1e6}));
  rule.interval_seconds = 30;
  EXPECT_TRUE(is_time_to_save(rule, 101, {.step = 100, .seconds_ago = 30}));
  EXPECT_FALSE(is_time_to_save(rule, 101, {.step = 100, .seconds_ago = 29.9}));
}

TEST(SaveRule, WhatWasNotMadeAtItsStepIsMadeLater) {
  const spec::Checkpoint rule = {.interval = 200};
  EXPECT_FALSE(is_time_to_save(rule, 199, {}));
  EXPECT_TRUE(is_time_to_save(rule, 200, {}));
  EXPECT_TRUE(is_time_to_save(rule, 202, {})) << "that of step 200 was given up";
  EXPECT_FALSE(is_time_to_save(rule, 203, {.step = 202}));
  EXPECT_TRUE(is_time_to_save(rule, 400, {.step = 202})) << "the next does not move";
}

TEST(SaveRule, AsOftenAsPays) {
  // sqrt(2 x 0.5 x 3600) = 60
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.5, .seconds = 5}, 3600), 60);
  // A disk that takes longer than that rests as long as it works.
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.5, .seconds = 50}, 3600), 100);
  // Training waits 3.5 % of its time at most, however often workers fail.
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.7, .seconds = 1}, 1), 20);

  const spec::Checkpoint rule = {.interval = -1, .mtbf_seconds = 3600};
  EXPECT_FALSE(is_time_to_save(rule, 1, {.seconds_ago = 59}));
  EXPECT_TRUE(is_time_to_save(rule, 1, {.seconds_ago = 60}));
  EXPECT_FALSE(is_time_to_save(rule, 1, {.seconds_ago = 59, .cost = SaveCost{0.5, 5}}));
  EXPECT_TRUE(is_time_to_save(rule, 1, {.seconds_ago = 61, .cost = SaveCost{0.5, 5}}));
}

}  // namespace
}  // namespace lockstep::train
