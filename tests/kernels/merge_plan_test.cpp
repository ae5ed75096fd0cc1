// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/merge_plan.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/combinations.h"

namespace lockstep::kernels {
namespace {

std::vector<Operand> operands(const std::vector<std::uint8_t>& merges) {
  std::vector<Operand> made;
  for (std::uint8_t merge : merges) made.push_back({.data = nullptr, .merges = merge});
  return made;
}

TEST(PartialValues, GrowWithTheHeightOfABalancedTree) {
  EXPECT_EQ(partial_values(operands({0})), 0U);
  EXPECT_EQ(partial_values(operands(balanced_merges(2))), 1U);
  EXPECT_EQ(partial_values(operands(balanced_merges(4))), 2U);
  EXPECT_EQ(partial_values(operands(balanced_merges(64))), 6U);
  EXPECT_EQ(partial_values(operands(balanced_merges(kMaxOperands))), 12U);
}

TEST(PartialValues, AreOneForALeaningTree) {
  EXPECT_EQ(partial_values(operands(left_merges(100))), 1U);
  EXPECT_EQ(partial_values(operands(right_merges(100))), 1U);
}

TEST(PartialValues, CountPairsThatWait) {
  EXPECT_EQ(partial_values(operands({0, 1, 0, 1, 0, 1, 0, 4})), 4U);
}

TEST(LeadingTree, IsTheLargestPerfectOne) {
  EXPECT_EQ(leading_tree_height(operands({0}), 3), 0U);
  EXPECT_EQ(leading_tree_height(operands({0, 0, 2}), 3), 0U);
  EXPECT_EQ(leading_tree_height(operands({0, 1}), 3), 1U);
  EXPECT_EQ(leading_tree_height(operands({0, 1, 1}), 3), 1U);
  EXPECT_EQ(leading_tree_height(operands({0, 1, 0, 1, 2}), 3), 1U);
  EXPECT_EQ(leading_tree_height(operands({0, 1, 0, 2}), 3), 2U);
  EXPECT_EQ(leading_tree_height(operands({0, 1, 0, 2, 0, 1, 1}), 3), 2U);
  EXPECT_EQ(leading_tree_height(operands(balanced_merges(8)), 3), 3U);
  EXPECT_EQ(leading_tree_height(operands(balanced_merges(16)), 3), 3U);
}

TEST(LeadingTree, IsNoHigherThanAsked) {
  EXPECT_EQ(leading_tree_height(operands(balanced_merges(8)), 1), 1U);
  EXPECT_EQ(leading_tree_height(operands(balanced_merges(8)), 2), 2U);
  EXPECT_EQ(leading_tree_height(operands(balanced_merges(64)), 6), 6U);
}

TEST(LeadingTree, MayBeMergedOnWithWhatWasBeforeIt) {
  EXPECT_EQ(leading_tree_height(operands({0, 3}), 3), 1U);
  EXPECT_EQ(leading_tree_height(operands({0, 1, 0, 5}), 3), 2U);
  EXPECT_EQ(leading_tree_height(operands({1, 0, 1}), 3), 0U);
}

}  // namespace
}  // namespace lockstep::kernels
