// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/save_rule.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(SaveRule, ByStepsAndByTime) {
  spec::Checkpoint rule;
  EXPECT_FALSE(is_time_to_save(rule, 100, 1e6, std::nullopt));
  rule.interval = 50;
  EXPECT_TRUE(is_time_to_save(rule, 100, 0, std::nullopt));
  EXPECT_FALSE(is_time_to_save(rule, 101, 1e6, std::nullopt));
  rule.interval_seconds = 30;
  EXPECT_TRUE(is_time_to_save(rule, 101, 30, std::nullopt));
  EXPECT_FALSE(is_time_to_save(rule, 101, 29.9, std::nullopt));
}

TEST(SaveRule, AsOftenAsPays) {
  // sqrt(2 x 0.5 x 3600) = 60
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.5, .seconds = 5}, 3600), 60);
  // A disk that takes longer than that rests as long as it works.
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.5, .seconds = 50}, 3600), 100);
  // Training waits 3.5 % of its time at most, however often workers fail.
  EXPECT_DOUBLE_EQ(best_interval_seconds({.stall_seconds = 0.7, .seconds = 1}, 1), 20);

  const spec::Checkpoint rule = {.interval = -1, .mtbf_seconds = 3600};
  EXPECT_FALSE(is_time_to_save(rule, 1, 59, std::nullopt));
  EXPECT_TRUE(is_time_to_save(rule, 1, 60, std::nullopt));
  EXPECT_FALSE(is_time_to_save(rule, 1, 59, SaveCost{0.5, 5}));
  EXPECT_TRUE(is_time_to_save(rule, 1, 61, SaveCost{0.5, 5}));
}

}  // namespace
}  // namespace lockstep::train
