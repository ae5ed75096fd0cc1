// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_record.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(RunRecord, TheFirstDifferenceIsNamed) {
  const RunRecord one = {{1, "weights", "a", 7}, {1, "loss", "", 8}, {2, "weights", "a", 9}};
  RunRecord other = one;
  EXPECT_EQ(first_difference(one, {other}), std::nullopt);
  other[2].bits = 10;
  other[1].bits = 11;
  EXPECT_EQ(first_difference(one, {other}), (RecordedDifference{0, one[1]}));
}

TEST(RunRecord, TheRankThatDiffersFirstIsNamed) {
  const RunRecord one = {{1, "weights", "a", 7}, {1, "loss", "", 8}, {2, "weights", "a", 9}};
  std::vector<RunRecord> ranks(4, one);
  ranks[1][2].bits = 10;
  ranks[2][1].bits = 10;
  ranks[3][1].bits = 10;
  EXPECT_EQ(first_difference(one, ranks), (RecordedDifference{2, one[1]}));
}

TEST(RunRecord, AFactThatOnlyOneHasIsADifference) {
  const RunRecord one = {{1, "loss", "", 7}, {2, "loss", "", 9}};
  const RunRecord shorter = {{1, "loss", "", 7}};
  EXPECT_EQ(first_difference(one, {shorter}), (RecordedDifference{0, one[1]}));
  EXPECT_EQ(first_difference(shorter, {one}), (RecordedDifference{0, one[1]}));
}

TEST(RunRecord, AFactIsTold) {
  EXPECT_EQ(describe({3, "gradient", "h.0.ln_1.weight", 7}), "step 3, the gradient of h.0.ln_1.weight");
  EXPECT_EQ(describe({1, "gradient norm", "", 7}), "step 1, the gradient norm");
}

TEST(RunRecord, TextKeepsEveryBit) {
  const RunRecord record = {{1, "gradient norm", "", 0xFFFFFFFFFFFFFFFF},
                            {12, "weights", "h.0.ln_1.weight", 0}};
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
