// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/counted.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Counted, OnlyOneIsSingular) {
  EXPECT_EQ(counted(0, "lane"), "0 lanes");
  EXPECT_EQ(counted(1, "lane"), "1 lane");
  EXPECT_EQ(counted(std::uint64_t{1} << 40, "lane"), "1099511627776 lanes");
  EXPECT_EQ(counted(1, "batch", "es"), "1 batch");
  EXPECT_EQ(counted(2, "batch", "es"), "2 batches");
}

}  // namespace
}  // namespace lockstep
