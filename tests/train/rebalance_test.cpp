// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/rebalance.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

std::vector<int> after(const LaneOwnership& lanes, const std::vector<double>& seconds) {
  const LaneOwnership found = rebalanced(lanes, seconds);
  EXPECT_EQ(found.lanes(), lanes.lanes());
  EXPECT_EQ(found.world(), lanes.world());
  std::vector<int> counts;
  for (Rank rank = 0; rank < found.world(); ++rank) counts.push_back(found.count_of(rank));
  return counts;
}

TEST(Rebalance, SlowRanksGetFewerLanes) {
  EXPECT_EQ(after(even_ownership(8, 2), {3.0, 1.0}), (std::vector<int>{2, 6}));
  EXPECT_EQ(after({{0, 2, 8}}, {1.5, 1.5}), (std::vector<int>{2, 6}));  // it has found its place
  EXPECT_EQ(after(even_ownership(8, 4), {1.0, 1.0, 1.0, 5.0}), (std::vector<int>{3, 2, 2, 1}));
}

TEST(Rebalance, SmallDifferencesMoveNothing) {
  EXPECT_EQ(after(even_ownership(64, 2), {1.02, 0.98}), (std::vector<int>{32, 32}));
  EXPECT_EQ(after(even_ownership(2, 2), {1.3, 1.0}), (std::vector<int>{1, 1}));
}

TEST(Rebalance, ARankWithoutLanesGetsItsChance) {
  EXPECT_EQ(after({{0, 8, 8}}, {4.0, 0.0}), (std::vector<int>{4, 4}));
}

TEST(Rebalance, WithoutMeasurementsAllRanksCountAlike) {
  EXPECT_EQ(after({{0, 3, 8}}, {0.0, 0.0}), (std::vector<int>{4, 4}));
  EXPECT_EQ(after(even_ownership(1, 3), {1.0, 0.0, 0.0}), (std::vector<int>{1, 0, 0}));
}

}  // namespace
}  // namespace lockstep::train
