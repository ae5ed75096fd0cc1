// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/float16.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

namespace lockstep::kernels {
namespace {

// Both formats order their positive values as their bits, so neighbours are consecutive bits, and rounding is
// right if it is right at, just below and just above the middle of every two neighbours.
template <float (*widened)(std::uint16_t), std::uint16_t (*narrowed)(float)>
void expect_nearest_even(std::uint16_t infinity) {
  for (std::uint16_t bits = 0; bits < infinity; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const double low = widened(bits);
    // Rounding to infinity begins where the next binade would.
    const double high =
        next == infinity ? 2 * low - widened(static_cast<std::uint16_t>(bits - 1)) : widened(next);
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(narrowed(static_cast<float>(low)), bits);
    ASSERT_EQ(narrowed(middle), bits % 2 == 0 ? bits : next) << bits;
    ASSERT_EQ(narrowed(std::nextafter(middle, 0.0F)), bits) << bits;
    ASSERT_EQ(narrowed(std::nextafter(middle, std::numeric_limits<float>::infinity())), next) << bits;
    ASSERT_EQ(narrowed(-middle), (bits % 2 == 0 ? bits : next) | 0x8000) << bits;
  }
  EXPECT_EQ(narrowed(std::numeric_limits<float>::infinity()), infinity);
  EXPECT_EQ(narrowed(-std::numeric_limits<float>::infinity()), infinity | 0x8000);
  EXPECT_EQ(narrowed(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(narrowed(-0.0F), 0x8000);
  EXPECT_TRUE(std::signbit(widened(0x8000)));
}

TEST(Bf16, RoundsToNearestEven) {
  expect_nearest_even<float_of_bf16, bf16_of_float>(0x7F80);
}

TEST(Fp16, RoundsToNearestEven) {
  expect_nearest_even<float_of_fp16, fp16_of_float>(0x7C00);
}

TEST(Fp16, HasTheValuesOfItsFormat) {
  EXPECT_EQ(float_of_fp16(0x3C00), 1.0F);
  EXPECT_EQ(float_of_fp16(0xC000), -2.0F);
  EXPECT_EQ(float_of_fp16(0x7BFF), 65504.0F);
  EXPECT_EQ(float_of_fp16(0x0400), 0x1p-14F);
  EXPECT_EQ(float_of_fp16(0x0001), 0x1p-24F);
  EXPECT_EQ(float_of_bf16(0x3F80), 1.0F);
  EXPECT_EQ(float_of_bf16(0xC040), -3.0F);
}

TEST(Nan, StaysNanAndBecomesTheQuietOne) {
  for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x7F81, 0x7FFF, 0xFFC0}) {
    EXPECT_TRUE(std::isnan(float_of_bf16(bits)));
    EXPECT_EQ(bf16_of_float(float_of_bf16(bits)), kNanBf16);
  }
  for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{0x7C01, 0x7FFF, 0xFE00}) {
    EXPECT_TRUE(std::isnan(float_of_fp16(bits)));
    EXPECT_EQ(fp16_of_float(float_of_fp16(bits)), kNanFp16);
  }
}

}  // namespace
}  // namespace lockstep::kernels
