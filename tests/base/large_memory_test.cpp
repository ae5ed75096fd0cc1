// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/large_memory.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stop_token>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lockstep {
namespace {

bool is_zero(ConstBytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// In whole pages.
std::size_t resident_bytes(const LargeMemory& memory) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((memory.bytes().size() + page - 1) / page);
  EXPECT_EQ(::mincore(memory.bytes().data(), memory.bytes().size(), pages.data()), 0);
  return page * static_cast<std::size_t>(
                    std::ranges::count_if(pages, [](unsigned char entry) { return (entry & 1U) != 0; }));
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

TEST(LargeMemory, TakesItsRoomAheadAndKeepsWhatIsThere) {
  const LargeMemory memory((std::size_t{40} << 20) + 3);
  memory.bytes().back() = std::byte{7};
  std::stop_source stopped;
  stopped.request_stop();
  memory.take_room(stopped.get_token());
  EXPECT_LT(resident_bytes(memory), memory.bytes().size() / 2);
  memory.take_room({});
#ifdef MADV_POPULATE_WRITE
  EXPECT_GE(resident_bytes(memory), memory.bytes().size());
#endif
  EXPECT_EQ(memory.bytes().back(), std::byte{7});
  EXPECT_TRUE(is_zero(memory.bytes().first(memory.bytes().size() - 1)));
  LargeMemory().take_room({});
}

TEST(LargeMemory, HasOneOwner) {
  LargeMemory first(100);
  first.bytes()[3] = std::byte{9};
  LargeMemory second = std::move(first);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): it is what is tested
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
