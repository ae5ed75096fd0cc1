// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/reduce.h"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/combinations.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

using Reduce = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Targets, Reduce, testing::ValuesIn(every_target()), target_name);

TEST_P(Reduce, AgreesWithTheReferenceForEveryTypeOperationAndTree) {
  std::mt19937_64 random(1);
  for (DType dtype : kAllDTypes) {
    for (ReduceOp op : kEveryOp) {
      for (std::size_t leaves : {1, 2, 3, 4, 5, 7, 8, 16, 33}) {
        for (const auto& merges : {balanced_merges(leaves), left_merges(leaves), right_merges(leaves),
                                   random_merges(random, leaves)}) {
          expect_same_as_reference({.how = {.dtype = dtype, .op = op}, .merges = merges, .elements = 333},
                                   random);
        }
      }
    }
  }
}

TEST_P(Reduce, AgreesForEverySizeAroundVectorsAndBlocks) {
  std::mt19937_64 random(2);
  for (DType dtype : kAllDTypes) {
    const std::size_t per_block = 2048 / size_of(dtype);
    for (std::size_t leaves : {1, 2, 3, 4, 8, 9}) {
      const auto merges = balanced_merges(leaves);
      for (std::size_t elements = 0; elements <= 70; ++elements) {
        expect_same_as_reference({.how = {.dtype = dtype}, .merges = merges, .elements = elements}, random);
      }
      for (std::size_t elements : {per_block - 1, per_block, per_block + 1, 2 * per_block - 1,
                                   2 * per_block + 1, 3 * per_block, 4 * per_block - 1, 4 * per_block + 1}) {
        expect_same_as_reference({.how = {.dtype = dtype}, .merges = merges, .elements = elements}, random);
      }
    }
  }
}

TEST_P(Reduce, WritesEveryDestinationInPlaceOrApart) {
  std::mt19937_64 random(3);
  for (DType dtype : kAllDTypes) {
    for (std::size_t leaves : {1, 2, 3, 4, 5, 8}) {
      for (std::size_t destinations = 1; destinations <= 4; ++destinations) {
        for (std::size_t in_place = 0; in_place <= std::min(destinations, leaves); ++in_place) {
          for (std::size_t divide_by : {1, 3}) {
            expect_same_as_reference({.how = {.dtype = dtype, .divide_by = divide_by},
                                      .merges = balanced_merges(leaves),
                                      .elements = 2100,
                                      .destinations = destinations,
                                      .in_place = in_place},
                                     random);
          }
        }
      }
    }
  }
}

TEST_P(Reduce, NeedsNoAlignment) {
  std::mt19937_64 random(4);
  for (DType dtype : kAllDTypes) {
    for (std::size_t operand_offset : {0, 1, 3, 8, 31}) {
      for (std::size_t destination_offset : {0, 1, 7, 33}) {
        for (std::size_t leaves : {1, 2, 4, 5}) {
          expect_same_as_reference({.how = {.dtype = dtype},
                                    .merges = balanced_merges(leaves),
                                    .elements = 1500,
                                    .destinations = 2,
                                    .placement = {operand_offset, destination_offset}},
                                   random);
        }
      }
    }
  }
}

TEST_P(Reduce, DividesAsTheReferenceDoes) {
  std::mt19937_64 random(5);
  constexpr auto kHuge = std::numeric_limits<std::size_t>::max();
  for (DType dtype : kAllDTypes) {
    for (std::size_t divide_by :
         {std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{4096}, std::size_t{1} << 63, kHuge}) {
      for (std::size_t leaves : {1, 2, 3, 8}) {
        expect_same_as_reference({.how = {.dtype = dtype, .op = ReduceOp::average, .divide_by = divide_by},
                                  .merges = balanced_merges(leaves),
                                  .elements = 1030,
                                  .destinations = 2},
                                 random);
      }
    }
  }
}

TEST_P(Reduce, EvaluatesTheMostAwkwardTreeOfManyOperands) {
  std::mt19937_64 random(6);
  // Pairs that all wait for the last operand: every pair is a partial value alive to the end.
  std::vector<std::uint8_t> merges;
  for (int pair = 0; pair < 250; ++pair) merges.insert(merges.end(), {0, 1});
  merges.push_back(250);
  for (DType dtype : kAllDTypes) {
    expect_same_as_reference({.how = {.dtype = dtype}, .merges = merges, .elements = 100}, random);
  }
  expect_same_as_reference({.merges = balanced_merges(kMaxOperands), .elements = 20}, random);
}

// What the reference itself must say, so that both are not wrong alike.
template <typename T>
T combined(const Combination& how, std::array<T, 2> operands) {
  std::array<T, 2> results{};
  int which = 0;
  for (auto* function : {combine, combine_reference}) {
    const std::array<Operand, 2> views = {
        Operand{.data = reinterpret_cast<const std::byte*>(&operands[0]), .merges = 0},
        Operand{.data = reinterpret_cast<const std::byte*>(&operands[1]), .merges = 1}};
    const std::array<std::byte*, 1> destination = {reinterpret_cast<std::byte*>(&results[which++])};
    function(how, views, destination, 1);
  }
  EXPECT_EQ(results[0], results[1]);
  return results[0];
}

TEST_P(Reduce, WrapsIntegers) {
  constexpr auto kMin32 = std::numeric_limits<std::int32_t>::min();
  constexpr auto kMin64 = std::numeric_limits<std::int64_t>::min();
  const Combination sum32 = {.dtype = DType::int32};
  const Combination sum64 = {.dtype = DType::int64};
  EXPECT_EQ(combined<std::int32_t>(sum32, {kMin32, -1}), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(combined<std::int64_t>(sum64, {kMin64, -1}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(combined<std::uint8_t>({.dtype = DType::uint8}, {200, 100}), 44);
  EXPECT_EQ(combined<std::uint8_t>({.dtype = DType::uint8, .op = ReduceOp::product}, {16, 17}), 16);
  EXPECT_EQ(combined<std::int64_t>({.dtype = DType::int64, .op = ReduceOp::product}, {kMin64, -1}), kMin64);
}

TEST_P(Reduce, TruncatesIntegerAveragesTowardsZero) {
  EXPECT_EQ(combined<std::int32_t>({.dtype = DType::int32, .divide_by = 2}, {-4, -3}), -3);
  EXPECT_EQ(combined<std::int64_t>({.dtype = DType::int64, .divide_by = 3}, {4, 4}), 2);
  EXPECT_EQ(combined<std::uint8_t>({.dtype = DType::uint8, .divide_by = 2}, {3, 4}), 3);
}

TEST_P(Reduce, AddsInFloatAndRoundsToNearestEven) {
  const Combination bf16 = {.dtype = DType::bf16};
  EXPECT_EQ(combined<std::uint16_t>(bf16, {0x3F80, 0x3B80}), 0x3F80);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(combined<std::uint16_t>(bf16, {0x3F81, 0x3B80}), 0x3F82);  // the tie above: to even, upwards
  EXPECT_EQ(combined<std::uint16_t>(bf16, {0x0001, 0x0001}), 0x0002);  // denormals are kept
  EXPECT_EQ(combined<std::uint16_t>(bf16, {0x7F7F, 0x7F7F}), 0x7F80);  // overflow to infinity
  EXPECT_EQ(combined<std::uint16_t>(bf16, {0x7F80, 0xFF80}), 0x7FC0);  // infinity - infinity
  const Combination fp16 = {.dtype = DType::fp16};
  EXPECT_EQ(combined<std::uint16_t>(fp16, {0x3C00, 0x1000}), 0x3C00);  // 1 + 2^-11
  EXPECT_EQ(combined<std::uint16_t>(fp16, {0x0001, 0x8002}), 0x8001);
  EXPECT_EQ(combined<std::uint16_t>(fp16, {0x7BFF, 0x4C00}), 0x7C00);  // 65504 + 16: a tie, to infinity
}

TEST_P(Reduce, PrefersNegativeZeroAsMinimum) {
  constexpr std::uint32_t kMinusZero = 0x80000000;
  const Combination min = {.dtype = DType::fp32, .op = ReduceOp::min};
  const Combination max = {.dtype = DType::fp32, .op = ReduceOp::max};
  EXPECT_EQ(combined<std::uint32_t>(min, {0, kMinusZero}), kMinusZero);
  EXPECT_EQ(combined<std::uint32_t>(min, {kMinusZero, 0}), kMinusZero);
  EXPECT_EQ(combined<std::uint32_t>(max, {0, kMinusZero}), 0U);
  EXPECT_EQ(combined<std::uint32_t>(max, {kMinusZero, 0}), 0U);
  EXPECT_EQ(combined<std::uint32_t>(max, {0x3F800000, 0xFFA00001}), 0x7FC00000U);
}

TEST(ReduceArguments, RefusesMergesThatLeaveNotOneValue) {
  const float one = 1;
  float out = 0;
  const auto* data = reinterpret_cast<const std::byte*>(&one);
  const std::array<std::byte*, 1> to = {reinterpret_cast<std::byte*>(&out)};
  using Operands = std::vector<Operand>;
  EXPECT_THROW(combine({}, Operands{}, to, 1), InternalError);
  EXPECT_THROW(combine({}, Operands{{data, 1}}, to, 1), InternalError);
  EXPECT_THROW(combine({}, Operands{{data, 0}, {data, 0}}, to, 1), InternalError);
  EXPECT_THROW(combine({}, Operands{{data, 1}, {data, 0}}, to, 1), InternalError);
  EXPECT_THROW(combine({}, Operands{{data, 0}, {data, 1}, {data, 0}, {data, 3}}, to, 1), InternalError);
  EXPECT_THROW(combine({}, Operands(kMaxOperands + 1, {data, 0}), to, 1), InternalError);
  EXPECT_THROW(combine({.divide_by = 0}, Operands{{data, 0}}, to, 1), InternalError);
  EXPECT_EQ(out, 0.0F);
}

TEST(ReduceArguments, AcceptsNoElementsAndNoDestinations) {
  const float one = 1;
  const std::vector<Operand> operands = {{reinterpret_cast<const std::byte*>(&one), 0}};
  float out = 0;
  const std::array<std::byte*, 1> to = {reinterpret_cast<std::byte*>(&out)};
  combine({}, operands, to, 0);
  combine({}, operands, {}, 1);
  EXPECT_EQ(out, 0.0F);
}

}  // namespace
}  // namespace lockstep::kernels
