// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/cli/bench/values.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/schedule/collective/canonical.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kCount = 301;
constexpr Range kAll{0, kCount};

std::vector<std::byte> values(DType dtype, Rank rank) {
  std::vector<std::byte> bytes(kCount * size_of(dtype));
  fill_values(bytes, dtype, rank, kAll);
  return bytes;
}

// The sum by the kernels' plain twin, in the order that `merges` gives.
std::vector<std::byte> combined(DType dtype, int ranks, const std::vector<std::uint8_t>& merges) {
  std::vector<std::vector<std::byte>> inputs;
  for (Rank rank = 0; rank < ranks; ++rank) inputs.push_back(values(dtype, rank));
  std::vector<kernels::Operand> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) operands.push_back({inputs[i].data(), merges[i]});
  std::vector<std::byte> sum(kCount * size_of(dtype));
  const std::array<std::byte*, 1> to = {sum.data()};
  kernels::combine_reference({.dtype = dtype}, operands, to, kCount);
  return sum;
}

class BenchValues : public testing::TestWithParam<DType> {};

TEST_P(BenchValues, DifferFromRankToRank) {
  EXPECT_NE(values(GetParam(), 0), values(GetParam(), 1));
  EXPECT_TRUE(holds_values(values(GetParam(), 3), GetParam(), 3, kAll, 0));
  EXPECT_FALSE(holds_values(values(GetParam(), 3), GetParam(), 2, kAll, 0));
  EXPECT_FALSE(holds_values(values(GetParam(), 3), GetParam(), 3, {0, 10}, 1));
}

TEST_P(BenchValues, CanonicalSumsAreRecognizedForAnyWorld) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    const auto sum = combined(GetParam(), ranks, schedule::canonical_merges(ranks));
    EXPECT_TRUE(holds_sum(sum, GetParam(), ranks, kAll, Comparison::bits)) << ranks;
    EXPECT_TRUE(holds_sum(sum, GetParam(), ranks, kAll, Comparison::rounding)) << ranks;
    EXPECT_FALSE(holds_sum(sum, GetParam(), ranks + 1, kAll, Comparison::rounding)) << ranks;
  }
}

TEST_P(BenchValues, OneWrongElementIsFound) {
  auto sum = combined(GetParam(), 2, schedule::canonical_merges(2));
  sum[200 * size_of(GetParam())] ^= std::byte{1};
  EXPECT_FALSE(holds_sum(sum, GetParam(), 2, kAll, Comparison::bits));
  EXPECT_TRUE(holds_sum(sum, GetParam(), 2, {0, 200}, Comparison::bits));
}

INSTANTIATE_TEST_SUITE_P(AllDTypes, BenchValues, testing::ValuesIn(kAllDTypes));

TEST(BenchValuesOrder, AnotherOrderOfAdditionIsRoundingNotBits) {
  // ((a + b) + c) + d instead of (a + b) + (c + d).
  const auto sum = combined(DType::fp32, 4, {0, 1, 1, 1});
  EXPECT_FALSE(holds_sum(sum, DType::fp32, 4, kAll, Comparison::bits));
  EXPECT_TRUE(holds_sum(sum, DType::fp32, 4, kAll, Comparison::rounding));
}

}  // namespace
}  // namespace lockstep::cli
