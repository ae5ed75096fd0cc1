// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

int any_lanes() {
  return 1 << *rc::gen::inRange(0, 11);
}

bool is_ownership(const LaneOwnership& ownership, int lanes, int world) {
  return ownership.world() == world && ownership.lanes() == lanes && ownership.first_lane.front() == 0 &&
         std::ranges::is_sorted(ownership.first_lane);
}

// The fewest subtrees that cover [first, end), found by trying every one that may come first.
int fewest_subtrees(int first, int end) {
  std::vector<int> fewest(static_cast<std::size_t>(end - first) + 1, std::numeric_limits<int>::max());
  fewest[0] = 0;
  for (int at = first; at < end; ++at) {
    for (int count = 1; at % count == 0 && at + count <= end; count *= 2) {
      int& after = fewest[static_cast<std::size_t>(at + count - first)];
      after = std::min(after, fewest[static_cast<std::size_t>(at - first)] + 1);
      if (count > end) break;
    }
  }
  return fewest.back();
}

RC_GTEST_PROP(EvenOwnership, DiffersByAtMostOneAndNeverGrows, ()) {
  const int lanes = any_lanes();
  const int world = *rc::gen::inRange(1, 100);
  const LaneOwnership ownership = even_ownership(lanes, world);
  RC_ASSERT(is_ownership(ownership, lanes, world));
  for (Rank rank = 0; rank < world; ++rank) {
    RC_ASSERT(ownership.count_of(rank) == lanes / world + (rank < lanes % world ? 1 : 0));
  }
}

RC_GTEST_PROP(WeightedOwnership, StaysWithinOneLaneOfTheShare, ()) {
  const int lanes = any_lanes();
  const auto units = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1'000'000)));
  const double total = std::accumulate(units.begin(), units.end(), 0.0);
  RC_PRE(total > 0);
  const LaneOwnership ownership = weighted_ownership(lanes, std::vector<double>(units.begin(), units.end()));
  RC_ASSERT(is_ownership(ownership, lanes, static_cast<int>(units.size())));
  for (Rank rank = 0; rank < ownership.world(); ++rank) {
    const double share = lanes * units[static_cast<std::size_t>(rank)] / total;
    RC_ASSERT(std::abs(ownership.count_of(rank) - share) < 1.0 + 1e-3);
    if (units[static_cast<std::size_t>(rank)] == 0) RC_ASSERT(ownership.count_of(rank) == 0);
  }
}

RC_GTEST_PROP(WeightedOwnership, EqualWeightsGiveTheEvenOwnership, ()) {
  const int lanes = any_lanes();
  const int world = *rc::gen::inRange(1, 50);
  const double weight = *rc::gen::element(0.1, 1.0, 1e300, 1e-300);
  RC_ASSERT(weighted_ownership(lanes, std::vector<double>(static_cast<std::size_t>(world), weight)) ==
            even_ownership(lanes, world));
}

TEST(WeightedOwnership, GivesTheLargestRemaindersTheLeftover) {
  EXPECT_THAT(weighted_ownership(8, {1, 1, 1}).first_lane, ElementsAre(0, 3, 6, 8));
  EXPECT_THAT(weighted_ownership(8, {3, 1, 0}).first_lane, ElementsAre(0, 6, 8, 8));
  EXPECT_THAT(weighted_ownership(4, {0.2, 0.5, 0.3}).first_lane, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(weighted_ownership(4, {1, 5, 6}).first_lane, ElementsAre(0, 0, 2, 4));
}

RC_GTEST_PROP(CompleteSubtrees, CoverTheRunInOrderWithAlignedPowersOfTwo, ()) {
  const int first = *rc::gen::inRange(0, 200);
  const int end = first + *rc::gen::inRange(0, 200);
  int next = first;
  for (const Subtree& subtree : complete_subtrees(first, end)) {
    RC_ASSERT(subtree.first == next);
    RC_ASSERT((subtree.count & (subtree.count - 1)) == 0);
    RC_ASSERT(subtree.first % subtree.count == 0);
    next = subtree.end();
  }
  RC_ASSERT(next == end);
}

TEST(CompleteSubtrees, AreTheFewestPossible) {
  for (int first = 0; first <= 64; ++first) {
    for (int end = first; end <= 64; ++end) {
      EXPECT_EQ(static_cast<int>(complete_subtrees(first, end).size()), fewest_subtrees(first, end))
          << "[" << first << ", " << end << ")";
    }
  }
}

TEST(CompleteSubtrees, OfAllLanesIsTheWholeTree) {
  EXPECT_THAT(complete_subtrees(0, 64), ElementsAre(Subtree{0, 64}));
  EXPECT_THAT(complete_subtrees(3, 8), ElementsAre(Subtree{3, 1}, Subtree{4, 4}));
  EXPECT_THAT(complete_subtrees(5, 5), ElementsAre());
}

RC_GTEST_PROP(RoundUpToPowerOfTwo, IsTheSmallestThatIsNotBelow, ()) {
  const int value = *rc::gen::inRange(1, 1 << 30);
  const int rounded = round_up_to_power_of_two(value);
  RC_ASSERT((rounded & (rounded - 1)) == 0);
  RC_ASSERT(rounded >= value);
  RC_ASSERT(rounded / 2 < value);
}

TEST(Lanes, RefusesWhatMakesNoSense) {
  EXPECT_THROW(even_ownership(0, 2), UsageError);
  EXPECT_THROW(even_ownership(-4, 2), UsageError);
  EXPECT_THROW(even_ownership(4, 0), UsageError);
  EXPECT_THROW(weighted_ownership(4, {}), UsageError);
  EXPECT_THROW(weighted_ownership(4, {0, 0}), UsageError);
  EXPECT_THROW(weighted_ownership(4, {1, -1}), UsageError);
  EXPECT_THROW(weighted_ownership(4, {1, std::nan("")}), UsageError);
  EXPECT_THROW(weighted_ownership(4, {1, INFINITY}), UsageError);
  EXPECT_THROW(complete_subtrees(-1, 3), UsageError);
  EXPECT_THROW(complete_subtrees(3, 2), UsageError);
  EXPECT_THROW(round_up_to_power_of_two(0), UsageError);
  EXPECT_THROW(round_up_to_power_of_two((1 << 30) + 1), UsageError);
}

TEST(Lanes, SaysWhichPowerOfTwoIsNext) {
  try {
    even_ownership(6, 2);
    FAIL() << "six lanes were accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "lanes must be a power of two (1, 2, 4, ...), not 6; the next one is 8");
  }
}

}  // namespace
}  // namespace lockstep
