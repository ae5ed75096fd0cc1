// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/merger.h"

#include <random>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lockstep::data {
namespace {

std::vector<Merge> arbitrary_merges(std::uint32_t seed, Token letters, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<Merge> merges;
  for (Token next = letters; merges.size() < count; ++next) {
    merges.push_back({static_cast<Token>(random() % next), static_cast<Token>(random() % next), next});
  }
  return merges;
}

RC_GTEST_PROP(Merger, TheFastWayForLongWordsIsTheSlowWay, ()) {
  const auto merges =
      arbitrary_merges(*rc::gen::arbitrary<std::uint32_t>(), 3, *rc::gen::inRange<std::size_t>(0, 40));
  const PairTable table(merges);
  std::vector<Token> slow = *rc::gen::container<std::vector<Token>>(rc::gen::inRange<Token>(0, 3));
  std::vector<Token> fast = slow, chosen = slow;
  Merger merger(table);
  merger.merge_short(slow);
  merger.merge_long(fast);
  merger.merge(chosen);
  RC_ASSERT(slow == fast);
  RC_ASSERT(slow == chosen);
}

TEST(Merger, TakesTheEarliestMergeThenTheLeftmostPlace) {
  const std::vector<Merge> merges = {{1, 2, 10}, {0, 1, 11}, {0, 0, 12}};
  const PairTable table(merges);
  Merger merger(table);
  std::vector<Token> word = {0, 1, 2};
  merger.merge(word);
  EXPECT_EQ(word, (std::vector<Token>{0, 10}));
  word = {0, 0, 0};
  merger.merge(word);
  EXPECT_EQ(word, (std::vector<Token>{12, 0}));
}

TEST(PairTable, FindsAllAndNothingElse) {
  const auto merges = arbitrary_merges(7, 50, 20000);
  const PairTable table(merges);
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const Merge& merge = merges[random() % merges.size()];
    EXPECT_LE(table.find(merge.left, merge.right).rank, static_cast<std::uint32_t>(&merge - merges.data()));
  }
  EXPECT_EQ(table.find(1 << 30, 3).rank, PairTable::kNone);
  EXPECT_EQ(PairTable({}).find(0, 0).rank, PairTable::kNone);
}

}  // namespace
}  // namespace lockstep::data
