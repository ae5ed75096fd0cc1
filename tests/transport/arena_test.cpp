// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/arena.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

TEST(Arena, LocatesWhatItGaveAndNothingElse) {
  Arena arena;
  const Bytes small = arena.allocate(100);
  const Bytes large = arena.allocate(5'000'000);
  const auto first = arena.locate(small);
  const auto second = arena.locate(large.subspan(10));
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->segment, second->segment);
  EXPECT_EQ(second->offset, 10u);
  std::vector<std::byte> ordinary(100);
  EXPECT_FALSE(arena.locate(ordinary));
  EXPECT_FALSE(arena.locate({large.data(), arena.segment_bytes(second->segment) + 1}))
      << "runs out of the segment";
}

TEST(Arena, UsesFreedBlocksAgainAndMergesNeighbours) {
  Arena arena;
  std::vector<Bytes> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(arena.allocate(100'000));
  const std::uint32_t segments = arena.segments();
  // In an order that needs merging with the block before, the one after, and both.
  for (int i : {1, 0, 2, 5, 7, 6, 4, 3}) arena.release(blocks[static_cast<std::size_t>(i)]);
  const Bytes whole = arena.allocate(800'000);
  EXPECT_EQ(arena.segments(), segments);
  EXPECT_EQ(whole.data(), blocks[0].data());
}

TEST(Arena, LargeBlocksTakeNoMoreThanTheyNeed) {
  Arena arena;
  constexpr std::size_t kBytes = std::size_t{5} << 20;
  for (int i = 0; i < 12; ++i) arena.allocate(kBytes);
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < arena.segments(); ++i) taken += arena.segment_bytes(i);
  EXPECT_EQ(taken, 12 * kBytes);
}

TEST(Arena, BlocksNeverOverlap) {
  Arena arena;
  std::vector<Bytes> held;
  std::uint64_t state = 12345;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (held.size() > 50 || (state >> 60) < 6) {
      if (held.empty()) continue;
      std::swap(held[(state >> 20) % held.size()], held.back());
      const Bytes gone = held.back();
      held.pop_back();
      EXPECT_TRUE(std::all_of(gone.begin(), gone.end(), [&](std::byte b) { return b == gone[0]; }));
      arena.release(gone);
    } else {
      held.push_back(arena.allocate(1 + (state >> 30) % 40'000));
      std::memset(held.back().data(), static_cast<int>(state >> 50), held.back().size());
    }
  }
  EXPECT_LE(arena.segments(), 4u);
}

TEST(Arena, RefusesToReleaseWhatIsNotItsOwn) {
  Arena arena;
  const Bytes block = arena.allocate(1000);
  EXPECT_THROW(arena.release(block.subspan(64)), InternalError);
  arena.release(block);
  EXPECT_THROW(arena.release(block), InternalError);
}

TEST(Arena, AnEmptyAllocationIsEmpty) {
  Arena arena;
  EXPECT_TRUE(arena.allocate(0).empty());
  arena.release({});
  EXPECT_EQ(arena.segments(), 0u);
}

}  // namespace
}  // namespace lockstep::transport
