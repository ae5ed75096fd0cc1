// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_record.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(RunRecord, TheFirstDifferenceIsNamed) {
  const RunRecord one = {{1, "the loss", 7}, {1, "the weights of a", 8}, {2, "the loss", 9}};
  RunRecord other = one;
  EXPECT_EQ(first_difference(one, other), std::nullopt);
  other[2].bits = 10;
  other[1].bits = 11;
  EXPECT_EQ(first_difference(one, other), one[1]);
}

TEST(RunRecord, AFactThatOnlyOneHasIsADifference) {
  const RunRecord one = {{1, "the loss", 7}, {2, "the loss", 9}};
  const RunRecord shorter = {{1, "the loss", 7}};
  EXPECT_EQ(first_difference(one, shorter), one[1]);
  EXPECT_EQ(first_difference(shorter, one), one[1]);
}

TEST(RunRecord, TextKeepsEveryBit) {
  const RunRecord record = {{1, "the loss", 0xFFFFFFFFFFFFFFFF}, {12, "the weights of h.0.ln_1.weight", 0}};
  EXPECT_EQ(parse_record(to_text(record)), record);
}

TEST(RunRecord, TheDigestSeesOneBitAnywhere) {
  const std::vector<float> values(1000, 1.0F);
  for (std::size_t i : {0U, 1U, 500U, 999U}) {
    std::vector<float> changed = values;
    changed[i] = 1.0000001F;
    EXPECT_NE(digest_of(values), digest_of(changed)) << i;
  }
  EXPECT_NE(digest_of(std::vector<float>{0.0F}), digest_of(std::vector<float>{-0.0F}));
  EXPECT_NE(digest_of(std::vector<float>{1.0F, 2.0F}), digest_of(std::vector<float>{2.0F, 1.0F}));
}

}  // namespace
}  // namespace lockstep::cli
