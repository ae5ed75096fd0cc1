// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/shelf.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::schedule {
namespace {

TEST(Shelf, PutsThingsBesideEachOther) {
  Shelf shelf;
  EXPECT_EQ(shelf.elements(), 0U);
  EXPECT_EQ(shelf.take(3), (Range{0, 3}));
  EXPECT_EQ(shelf.take(5), (Range{3, 8}));
  EXPECT_EQ(shelf.elements(), 8U);
}

TEST(Shelf, UsesTheFirstGapThatIsLargeEnough) {
  Shelf shelf;
  shelf.take(10);
  shelf.give_back({1, 3});
  shelf.give_back({5, 8});
  EXPECT_EQ(shelf.take(3), (Range{5, 8}));
  EXPECT_EQ(shelf.take(1), (Range{1, 2}));
  EXPECT_EQ(shelf.take(1), (Range{2, 3}));
  EXPECT_EQ(shelf.elements(), 10U);
}

TEST(Shelf, JoinsGapsAndGrowsFromTheLast) {
  Shelf shelf;
  shelf.take(10);
  shelf.give_back({6, 8});
  shelf.give_back({8, 10});
  shelf.give_back({5, 6});
  EXPECT_EQ(shelf.take(7), (Range{5, 12}));
  EXPECT_EQ(shelf.elements(), 12U);
}

TEST(Shelf, NeverHasTwoThingsInOnePlace) {
  std::mt19937 random(3);
  Shelf shelf;
  std::vector<Range> taken;
  for (int turn = 0; turn < 2000; ++turn) {
    if (taken.size() > 20 || (!taken.empty() && random() % 2 == 0)) {
      const std::size_t index = random() % taken.size();
      Range& whole = taken[index];
      const Range part{whole.begin, whole.begin + 1 + random() % whole.size()};
      shelf.give_back(part);
      whole.begin = part.end;
      if (whole.empty()) taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(index));
      continue;
    }
    const Range fresh = shelf.take(1 + random() % 9);
    EXPECT_LE(fresh.end, shelf.elements());
    for (const Range& other : taken) ASSERT_FALSE(overlap(fresh, other));
    taken.push_back(fresh);
  }
  EXPECT_LE(shelf.elements(), 21U * 9U * 2U);
}

}  // namespace
}  // namespace lockstep::schedule
