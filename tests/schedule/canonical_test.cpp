// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/canonical.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {
namespace {

// The expression that merges make of named operands.
std::string expression(const std::vector<std::string>& operands, const std::vector<std::uint8_t>& merges) {
  std::vector<std::string> stack;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    stack.push_back(operands[i]);
    for (int merge = 0; merge < merges.at(i); ++merge) {
      const std::string upper = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + upper + ")";
    }
  }
  EXPECT_EQ(stack.size(), 1U);
  return stack.back();
}

std::string tree_over(int leaves) {
  std::vector<std::string> names(leaves);
  for (int leaf = 0; leaf < leaves; ++leaf) names[leaf] = static_cast<char>('a' + leaf);
  return expression(names, canonical_merges(leaves));
}

// The tree over all lanes by its definition.
std::string lane_tree(int first, int count) {
  if (count == 1) return std::string(1, static_cast<char>('a' + first));
  return "(" + lane_tree(first, count / 2) + lane_tree(first + count / 2, count / 2) + ")";
}

TEST(Canonical, SplitsAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(canonical_split(2), 1);
  EXPECT_EQ(canonical_split(3), 2);
  EXPECT_EQ(canonical_split(4), 2);
  EXPECT_EQ(canonical_split(5), 4);
  EXPECT_EQ(canonical_split(8), 4);
  EXPECT_EQ(canonical_split(9), 8);
  EXPECT_THROW(canonical_split(1), InternalError);
}

TEST(Canonical, TreesOfSmallWorlds) {
  EXPECT_EQ(tree_over(1), "a");
  EXPECT_EQ(tree_over(2), "(ab)");
  EXPECT_EQ(tree_over(3), "((ab)c)");
  EXPECT_EQ(tree_over(4), "((ab)(cd))");
  EXPECT_EQ(tree_over(5), "(((ab)(cd))e)");
  EXPECT_EQ(tree_over(6), "(((ab)(cd))(ef))");
  EXPECT_EQ(tree_over(7), "(((ab)(cd))((ef)g))");
  EXPECT_TRUE(canonical_merges(0).empty());
}

TEST(Canonical, PowersOfTwoAreTheLaneTree) {
  for (int lanes : {1, 2, 4, 8, 16}) EXPECT_EQ(tree_over(lanes), lane_tree(0, lanes)) << lanes;
}

TEST(Canonical, SubtreesMergeToTheSameTreeWhereverTheyAreCut) {
  constexpr int kLanes = 16;
  for (unsigned cuts = 0; cuts < 1U << (kLanes - 1); ++cuts) {
    std::vector<Subtree> operands;
    int first = 0;
    for (int lane = 1; lane <= kLanes; ++lane) {
      if (lane < kLanes && (cuts >> (lane - 1) & 1U) == 0) continue;
      for (const Subtree& subtree : complete_subtrees(first, lane)) operands.push_back(subtree);
      first = lane;
    }
    std::vector<std::string> names;
    names.reserve(operands.size());
    for (const Subtree& operand : operands) names.push_back(lane_tree(operand.first, operand.count));
    ASSERT_EQ(expression(names, canonical_merges(operands)), lane_tree(0, kLanes)) << cuts;
  }
}

TEST(Canonical, OperandsThatAreNoTreeAreABug) {
  const std::vector<Subtree> gap = {{0, 1}, {2, 1}};
  EXPECT_THROW(canonical_merges(gap), InternalError);
  const std::vector<Subtree> straddling = {{1, 1}, {2, 1}};
  EXPECT_THROW(canonical_merges(straddling), InternalError);
}

}  // namespace
}  // namespace lockstep::schedule
