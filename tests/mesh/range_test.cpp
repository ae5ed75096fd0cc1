// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/range.h"

#include <cstddef>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lockstep {
namespace {

Range any_range(std::size_t limit) {
  const auto begin = *rc::gen::inRange<std::size_t>(0, limit);
  return {begin, begin + *rc::gen::inRange<std::size_t>(0, limit)};
}

bool has(Range range, std::size_t element) {
  return range.begin <= element && element < range.end;
}

RC_GTEST_PROP(ChunkRange, ChunksAreInOrderAndCoverEverything, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 5000);
  const auto parts = *rc::gen::inRange<std::size_t>(1, 100);
  std::size_t next = 0;
  for (std::size_t index = 0; index < parts; ++index) {
    const Range chunk = chunk_range(count, parts, index);
    RC_ASSERT(chunk.begin == next);
    RC_ASSERT(chunk.end >= chunk.begin);
    next = chunk.end;
  }
  RC_ASSERT(next == count);
}

RC_GTEST_PROP(ChunkRange, FirstChunksHoldOneElementMore, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, 5000);
  const auto parts = *rc::gen::inRange<std::size_t>(1, 100);
  for (std::size_t index = 0; index < parts; ++index) {
    RC_ASSERT(chunk_range(count, parts, index).size() == count / parts + (index < count % parts ? 1 : 0));
  }
}

TEST(ChunkRange, HoldsAtTheLargestCounts) {
  constexpr std::size_t kCount = static_cast<std::size_t>(-1);
  EXPECT_EQ(chunk_range(kCount, 64, 63).end, kCount);
  EXPECT_EQ(chunk_range(kCount, 1, 0), (Range{0, kCount}));
}

RC_GTEST_PROP(Intersection, HoldsWhatBothHold, ()) {
  const Range a = any_range(30);
  const Range b = any_range(30);
  const Range both = intersection(a, b);
  bool any = false;
  for (std::size_t element = 0; element < 60; ++element) {
    const bool expected = has(a, element) && has(b, element);
    RC_ASSERT(has(both, element) == expected);
    any = any || expected;
  }
  RC_ASSERT(both.begin <= both.end);
  RC_ASSERT(both.empty() == !any);
}

RC_GTEST_PROP(Overlap, MeansACommonElement, ()) {
  const Range a = any_range(30);
  const Range b = any_range(30);
  RC_ASSERT(overlap(a, b) == overlap(b, a));
  RC_ASSERT(overlap(a, b) == !intersection(a, b).empty());
}

TEST(Overlap, EmptyRangesOverlapNothing) {
  EXPECT_FALSE(overlap({3, 3}, {3, 5}));
  EXPECT_FALSE(overlap({3, 3}, {3, 3}));
  EXPECT_FALSE(overlap({4, 4}, {3, 5}));
}

RC_GTEST_PROP(Contains, MeansEveryElement, ()) {
  const Range outer = any_range(30);
  const Range inner = any_range(30);
  if (!inner.empty()) RC_ASSERT(outer.contains(inner) == (intersection(outer, inner) == inner));
}

}  // namespace
}  // namespace lockstep
