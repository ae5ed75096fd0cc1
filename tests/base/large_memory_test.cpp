// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/large_memory.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

bool is_zero(ConstBytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(LargeMemory, IsZerosThatCanBeFilled) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, (std::size_t{4} << 20) + 3}) {
    const LargeMemory memory(size);
    ASSERT_EQ(memory.bytes().size(), size);
    EXPECT_TRUE(is_zero(memory.bytes()));
    std::ranges::fill(memory.bytes(), std::byte{7});
    EXPECT_EQ(memory.bytes().back(), std::byte{7});
  }
}

TEST(LargeMemory, HasOneOwner) {
  LargeMemory first(100);
  first.bytes()[3] = std::byte{9};
  LargeMemory second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  LargeMemory third;
  third = std::move(second);
  EXPECT_EQ(third.bytes()[3], std::byte{9});
  EXPECT_TRUE(LargeMemory(0).bytes().empty());
}

TEST(LargeMemory, TooMuchIsTold) {
  EXPECT_THROW(LargeMemory(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
}

}  // namespace
}  // namespace lockstep
