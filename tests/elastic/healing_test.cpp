// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/healing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;

TensorPiece piece(std::size_t tensor, std::size_t first, std::size_t length) {
  return {tensor, {.first = first, .length = length, .distance = length}};
}

TEST(PlanGifts, TakesFromItselfThenFromOthers) {
  const auto gifts =
      plan_gifts({{piece(0, 0, 4)}, {piece(0, 0, 4), piece(0, 4, 4)}}, {{piece(0, 2, 4)}, {piece(0, 0, 8)}});
  ASSERT_TRUE(gifts);
  EXPECT_THAT(*gifts, ElementsAre(Gift{0, 0, 0, 0}, Gift{1, 0, 1, 0}, Gift{1, 1, 0, 0}, Gift{1, 1, 1, 0}));
}

TEST(PlanGifts, ColumnsComeFromRows) {
  const TensorPiece columns = {0, {.first = 1, .length = 2, .distance = 4, .count = 3}};
  EXPECT_TRUE(plan_gifts({{piece(0, 0, 6)}, {piece(0, 6, 6)}}, {{columns}, {}}));
  EXPECT_FALSE(plan_gifts({{piece(0, 0, 6)}, {piece(0, 6, 4)}}, {{columns}, {}})) << "element 10 is nowhere";
}

TEST(PlanGifts, WhatIsNowhereIsMissed) {
  EXPECT_FALSE(plan_gifts({{}, {}}, {{piece(3, 0, 1)}, {}}));
  EXPECT_FALSE(plan_gifts({{piece(2, 0, 1)}, {}}, {{piece(3, 0, 1)}, {}}));
  EXPECT_TRUE(plan_gifts({{}, {}}, {{}, {}}));
}

// Rank 0 was in the last generation, in which it had another part than in the one before, and rank 1 was not.
TEST(PlanGifts, PiecesOfDifferentGenerationsGoTogether) {
  const std::vector<TensorPieces> kept = {{piece(0, 0, 6)}, {piece(0, 4, 4)}};
  const auto gifts = plan_gifts(kept, {{piece(0, 0, 4)}, {piece(0, 4, 4)}});
  ASSERT_TRUE(gifts);
  EXPECT_THAT(*gifts, ElementsAre(Gift{0, 0, 0, 0}, Gift{1, 1, 0, 0}));
  const auto all = plan_gifts(kept, {{piece(0, 0, 8)}, {piece(0, 0, 8)}});
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, ElementsAre(Gift{0, 0, 0, 0}, Gift{1, 0, 0, 0}, Gift{1, 1, 0, 0}, Gift{0, 1, 0, 0}));
  EXPECT_FALSE(plan_gifts({{piece(0, 0, 5)}, {piece(0, 4, 3)}}, {{piece(0, 0, 8)}, {}}))
      << "as many elements as are needed, and element 7 is nowhere";
}

TEST(PlanHealing, TheNewestStepCountsAndOlderOnesDoNot) {
  const std::vector<TensorPieces> needed = {{piece(0, 0, 4)}, {piece(0, 4, 4)}, {piece(0, 0, 8)}};
  const Kept old = {.step = 6, .pieces = {piece(0, 0, 8)}};
  const auto plan = plan_healing(
      {old, {.step = 7, .pieces = {piece(0, 0, 4)}}, {.step = 7, .pieces = {piece(0, 4, 4)}}}, needed);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->step, 7);
  EXPECT_EQ(plan->teller, 1);
  EXPECT_THAT(plan->gifts,
              ElementsAre(Gift{1, 0, 0, 0}, Gift{2, 1, 0, 0}, Gift{1, 2, 0, 0}, Gift{2, 2, 0, 0}));
  EXPECT_FALSE(plan_healing({old, {.step = 7, .pieces = {piece(0, 0, 4)}}, {}}, needed))
      << "what is missing of step 7 is not taken from step 6";
}

TEST(PlanHealing, NothingComesOfNothing) {
  EXPECT_FALSE(plan_healing({{}, {}}, {{piece(0, 0, 1)}, {}}));
  EXPECT_FALSE(plan_healing({{}, {}}, {{}, {}})) << "nobody knows a step";
}

}  // namespace
}  // namespace lockstep::elastic
