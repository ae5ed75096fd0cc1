// SPDX-License-Identifier: Apache-2.0
//
// Every 16-bit value against the values where rounding, overflow and NaN happen.
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/kernels/reduce.h"

#include "tests/kernels/combinations.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

using SpecialValues = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Targets, SpecialValues, testing::ValuesIn(every_target()), target_name);

constexpr std::size_t kEvery = 65536;

// 32 magnitudes with both signs: zero, the smallest and greatest denormals and normals, values around one
// and around powers of two, the greatest finite, infinity, quiet and signalling NaN.
std::vector<std::uint16_t> interesting(std::uint16_t smallest_normal, std::uint16_t one,
                                       std::uint16_t infinity) {
  const auto last = static_cast<std::uint16_t>(infinity - 1);
  std::vector<std::uint16_t> values;
  for (int magnitude : {0,
                        1,
                        2,
                        3,
                        5,
                        smallest_normal / 2,
                        smallest_normal / 2 + 1,
                        smallest_normal - 2,
                        smallest_normal - 1,
                        smallest_normal + 0,
                        smallest_normal + 1,
                        smallest_normal + 2,
                        2 * smallest_normal,
                        one / 2,
                        one - 1,
                        one + 0,
                        one + 1,
                        one + 2,
                        one + 3,
                        one + smallest_normal,
                        one + smallest_normal + 1,
                        one - smallest_normal,
                        one - 8 * smallest_normal,
                        one - 8 * smallest_normal + 1,
                        last / 2 + one / 2,
                        last - smallest_normal,
                        last - 1,
                        last + 0,
                        infinity + 0,
                        infinity + 1,
                        infinity + smallest_normal / 2,
                        0x7FFF}) {
    values.push_back(static_cast<std::uint16_t>(magnitude));
    values.push_back(static_cast<std::uint16_t>(magnitude | 0x8000));
  }
  return values;
}

std::vector<std::uint16_t> results(decltype(combine)* function, const Combination& how,
                                   const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  std::vector<std::uint16_t> out(a.size());
  const std::array<Operand, 2> operands = {
      Operand{.data = reinterpret_cast<const std::byte*>(a.data()), .merges = 0},
      Operand{.data = reinterpret_cast<const std::byte*>(b.data()), .merges = 1}};
  const std::array<std::byte*, 1> destination = {reinterpret_cast<std::byte*>(out.data())};
  function(how, operands, destination, out.size());
  return out;
}

void expect_every_pair_agrees(DType dtype, const std::vector<std::uint16_t>& others) {
  std::vector<std::uint16_t> every(kEvery);
  std::iota(every.begin(), every.end(), std::uint16_t{0});
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    for (std::uint16_t other : others) {
      const std::vector<std::uint16_t> same(kEvery, other);
      const Combination how = {.dtype = dtype, .op = op};
      EXPECT_EQ(results(combine, how, every, same), results(combine_reference, how, every, same))
          << name_of(dtype) << ' ' << name_of(op) << " with " << other;
      EXPECT_EQ(results(combine, how, same, every), results(combine_reference, how, same, every))
          << name_of(dtype) << ' ' << name_of(op) << ' ' << other << " with all";
    }
  }
}

TEST_P(SpecialValues, Bf16AgreesWithTheReference) {
  expect_every_pair_agrees(DType::bf16, interesting(0x0080, 0x3F80, 0x7F80));
}

TEST_P(SpecialValues, Fp16AgreesWithTheReference) {
  expect_every_pair_agrees(DType::fp16, interesting(0x0400, 0x3C00, 0x7C00));
}

// Quotients are the only fp32 values that are not sums or products of two small ones.
TEST_P(SpecialValues, QuotientsAgreeWithTheReference) {
  std::vector<std::uint16_t> every(kEvery);
  std::iota(every.begin(), every.end(), std::uint16_t{0});
  const std::vector<std::uint16_t> zero(kEvery, 0x8000);
  for (DType dtype : {DType::bf16, DType::fp16}) {
    for (std::size_t divide_by : {2, 3, 7, 8, 1000, 4096}) {
      const Combination how = {.dtype = dtype, .op = ReduceOp::average, .divide_by = divide_by};
      EXPECT_EQ(results(combine, how, every, zero), results(combine_reference, how, every, zero))
          << name_of(dtype) << " / " << divide_by;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
