// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/philox.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// The known answers that the authors of Philox publish with Random123 (philox4x32, 10 rounds).
TEST(Philox, GivesThePublishedValues) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SixtyFourBitsUseTheWholeCounterAndKey) {
  static_assert(philox64(0, 0, 0) == 0xe169c58d6627e8d5);
  const std::uint64_t high = std::uint64_t{1} << 63;
  EXPECT_NE(philox64(0, 0, high), philox64(0, 0, 0));
  EXPECT_NE(philox64(0, high, 0), philox64(0, 0, 0));
  EXPECT_NE(philox64(high, 0, 0), philox64(0, 0, 0));
}

}  // namespace
}  // namespace lockstep
