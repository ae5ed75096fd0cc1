// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/crc32c.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace lockstep::metrics {
namespace {

// RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, GivesThePublishedValues) {
  std::string ascending(32, '\0');
  std::iota(ascending.begin(), ascending.end(), '\0');
  const std::string descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(MaskedCrc32c, TurnsAndAdds) {
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
  // 0xe3069283 turned right by 15 is 0x2507c60d.
  EXPECT_EQ(masked_crc32c("123456789"), 0x2507c60du + 0xa282ead8u);
}

}  // namespace
}  // namespace lockstep::metrics
