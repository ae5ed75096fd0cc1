// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/replicas.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

// Copies of one thing, by rank.
std::vector<Copy> copies_of(std::int64_t what, const std::vector<std::int64_t>& hashes) {
  std::vector<Copy> copies;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    copies.push_back({what, static_cast<Rank>(rank), hashes[rank]});
  }
  return copies;
}

WrongCopies found_in(const std::vector<std::int64_t>& hashes) {
  return find_wrong(copies_of(0, hashes));
}

TEST(FindWrong, EqualCopiesAreRight) {
  EXPECT_EQ(find_wrong({}), WrongCopies());
  for (std::size_t world = 1; world <= 5; ++world) {
    EXPECT_EQ(found_in(std::vector<std::int64_t>(world, 7)), WrongCopies()) << world;
  }
}

TEST(FindWrong, OfTwoNobodyKnows) {
  EXPECT_EQ(found_in({7, 8}), (WrongCopies{{}, {0, 1}}));
}

TEST(FindWrong, OfThreeAndFourTheOddOneIs) {
  EXPECT_EQ(found_in({7, 8, 7}), (WrongCopies{{1}, {}}));
  EXPECT_EQ(found_in({8, 7, 7, 7}), (WrongCopies{{0}, {}}));
  EXPECT_EQ(found_in({7, 7, 8, 7, 9}), (WrongCopies{{2, 4}, {}}));
}

TEST(FindWrong, TiesAreUndecided) {
  EXPECT_EQ(found_in({7, 8, 9}), (WrongCopies{{}, {0, 1, 2}}));
  EXPECT_EQ(found_in({7, 8, 7, 8}), (WrongCopies{{}, {0, 1, 2, 3}}));
  EXPECT_EQ(found_in({7, 7, 8, 9}), (WrongCopies{{}, {0, 1, 2, 3}})) << "half is not most";
}

TEST(FindWrong, AWrongRankHasNoVoiceElsewhere) {
  // Rank 1 has other weights than 0 and 2, and its share is not as its mirror has it, which is rank 2.
  std::vector<Copy> copies = copies_of(-1, {7, 8, 7});
  copies.insert(copies.end(), {{0, 0, 1}, {0, 1, 1}, {1, 1, 5}, {1, 2, 6}, {2, 2, 3}, {2, 0, 3}});
  EXPECT_EQ(find_wrong(copies), (WrongCopies{{1}, {}}));
}

TEST(FindWrong, AShareAndItsMirrorAloneAreUndecided) {
  std::vector<Copy> copies = copies_of(-1, {7, 7, 7});
  copies.insert(copies.end(), {{0, 0, 1}, {0, 1, 1}, {1, 1, 5}, {1, 2, 6}, {2, 2, 3}, {2, 0, 3}});
  EXPECT_EQ(find_wrong(copies), (WrongCopies{{}, {1, 2}}));
}

}  // namespace
}  // namespace lockstep::train
