// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/checkpoint/cuts.h"

namespace lockstep::checkpoint {
namespace {

using ::testing::Optional;

std::optional<std::string> find_gap(std::vector<Runs> pieces, std::size_t elements) {
  std::uint64_t patience = kMostPatience;
  return checkpoint::find_gap(std::move(pieces), elements, patience);
}

// How many of the pieces have each element.
std::vector<int> counts_of(const std::vector<Runs>& pieces, std::size_t elements) {
  std::vector<int> counts(elements);
  for (const Runs& runs : pieces) {
    each_numbered(runs, {0, runs.size()}, [&](std::size_t, std::size_t element, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) ++counts[element + i];
    });
  }
  return counts;
}

bool is_covered(const std::vector<Runs>& pieces, std::size_t elements) {
  const std::vector<int> counts = counts_of(pieces, elements);
  return std::ranges::all_of(counts, [](int count) { return count == 1; });
}

RC_GTEST_PROP(Coverage, WhatIsCutIsWhole, ()) {
  const auto shape = testing::any_shape();
  const std::size_t elements = LogicalTensor{"t", shape}.elements();
  RC_ASSERT(find_gap(testing::any_cut(shape), elements) == std::nullopt);
}

// A cut with one number changed, which mostly spoils it.
RC_GTEST_PROP(Coverage, AgreesWithCounting, ()) {
  const auto shape = testing::any_shape();
  const std::size_t elements = LogicalTensor{"t", shape}.elements();
  std::vector<Runs> pieces = testing::any_cut(shape);
  if (!pieces.empty()) {
    Runs& changed = pieces[*rc::gen::inRange<std::size_t>(0, pieces.size())];
    std::size_t* const numbers[] = {&changed.first, &changed.length, &changed.distance, &changed.count};
    *numbers[*rc::gen::inRange(0, 4)] += *rc::gen::element<std::size_t>(1, 2, static_cast<std::size_t>(-1));
  }
  for (const Runs& runs : pieces) {
    RC_PRE(runs.length > 0 && runs.count > 0 && runs.first < elements);
    RC_PRE(runs.count == 1 || runs.distance >= runs.length);
    RC_PRE(runs.first + (runs.count - 1) * runs.distance + runs.length <= elements);
  }
  RC_ASSERT(find_gap(pieces, elements).has_value() == !is_covered(pieces, elements));
}

TEST(Coverage, SaysWhatIsWrong) {
  EXPECT_EQ(find_gap({}, 0), std::nullopt);
  EXPECT_THAT(find_gap({}, 3), Optional(std::string("has no piece with element 0")));
  EXPECT_THAT(find_gap({{0, 2, 2, 1}, {3, 1, 1, 1}}, 4),
              Optional(std::string("has no piece with element 2")));
  EXPECT_THAT(find_gap({{0, 3, 3, 1}, {2, 2, 2, 1}}, 4),
              Optional(std::string("has element 2 in two pieces")));
  EXPECT_THAT(find_gap({{0, 1, 2, 3}, {1, 1, 2, 2}}, 6),
              Optional(std::string("has no piece with element 5")));
  EXPECT_THAT(find_gap({{0, 4, 4, 1}, {0, 4, 4, 1}}, 4),
              Optional(std::string("has element 0 in two pieces")));
}

// Takes no time for each run: there are more than a machine could count.
TEST(Coverage, OfATensorWithManyRuns) {
  constexpr std::size_t kRows = std::size_t{1} << 50;
  const Runs left = {0, 3, 10, kRows};
  const Runs right = {3, 7, 10, kRows};
  EXPECT_EQ(find_gap({right, left}, 10 * kRows), std::nullopt);
  const Runs begin_of_right = {3, 7, 10, kRows / 3};
  const Runs end_of_right = {3 + 10 * (kRows / 3), 7, 10, kRows - kRows / 3};
  EXPECT_EQ(find_gap({end_of_right, left, begin_of_right}, 10 * kRows), std::nullopt);
  EXPECT_NE(find_gap({left, begin_of_right}, 10 * kRows), std::nullopt);
}

// As a large tensor has that many ranks have cut by columns, and then each share anywhere.
TEST(Coverage, TakesLittlePatienceForManyPieces) {
  constexpr std::size_t kRows = 8192;
  constexpr std::size_t kRanks = 512;
  std::vector<Runs> pieces;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    pieces.push_back({rank * 16, 16, kRanks * 16, rank + 1});
    pieces.push_back({rank * 16 + (rank + 1) * kRanks * 16, 16, kRanks * 16, kRows - rank - 1});
  }
  std::uint64_t patience = 2'000'000;
  EXPECT_EQ(checkpoint::find_gap(pieces, kRows * kRanks * 16, patience), std::nullopt);
  pieces.resize(kRanks * 2 - 1);
  EXPECT_NE(find_gap(pieces, kRows * kRanks * 16), std::nullopt);
}

// Pieces with several distances are gone through run by run, but not for ever.
TEST(Coverage, GivesUpOnAMaze) {
  constexpr std::size_t kRows = std::size_t{1} << 40;
  EXPECT_EQ(find_gap({{0, 1, 2, 8}, {1, 1, 4, 4}, {3, 1, 4, 4}}, 16), std::nullopt);
  EXPECT_THAT(find_gap({{0, 1, 2, 2 * kRows}, {1, 1, 4, kRows}, {3, 1, 4, kRows}}, 4 * kRows),
              Optional(std::string("has pieces that alternate in too many ways")));
}

}  // namespace
}  // namespace lockstep::checkpoint
