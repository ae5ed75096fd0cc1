// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/buckets.h"

#include <gtest/gtest.h>

namespace lockstep::plan {
namespace {

using schedule::Chunk;

TEST(GroupBlocks, AreFullOrTheLast) {
  const std::vector<std::int64_t> elements = {5, 1, 1, 3, 4, 1};
  EXPECT_EQ(group_blocks(elements, 4), (std::vector<Chunk>{{0, 1}, {1, 4}, {4, 5}, {5, 6}}));
  EXPECT_EQ(group_blocks(elements, 1).size(), 6U);
  EXPECT_EQ(group_blocks(elements, 1000), (std::vector<Chunk>{{0, 6}}));
}

TEST(GroupBlocks, ThatHaveNothingGoWithTheOneBefore) {
  EXPECT_EQ(group_blocks(std::vector<std::int64_t>{0, 5, 0, 0, 5, 0}, 4),
            (std::vector<Chunk>{{0, 4}, {4, 6}}));
}

TEST(RoomFor, IsSharedByThoseThatDifferByLittle) {
  const std::vector<std::uint64_t> sizes = {1000, 80, 80, 88, 91, 0};
  EXPECT_EQ(room_for(1000, sizes), 1000U);
  EXPECT_EQ(room_for(80, sizes), 88U);
  EXPECT_EQ(room_for(88, sizes), 91U);
  EXPECT_EQ(room_for(0, sizes), 0U);
  EXPECT_EQ(room_for(7, {}), 7U);
}

}  // namespace
}  // namespace lockstep::plan
