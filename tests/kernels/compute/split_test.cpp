// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/split.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/update/optimizers.h"

namespace lockstep::kernels {
namespace {

float of_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// Every upper half, with lower halves around the point where rounding turns.
std::vector<float> many_values() {
  std::vector<float> values;
  for (std::uint32_t high = 0; high <= 0xFFFF; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
      const float value = of_bits(high << 16U | low);
      if (!std::isnan(value)) values.push_back(value);
    }
  }
  return values;
}

TEST(Split, JoinsToTheSameBits) {
  const std::vector<float> values = many_values();
  std::vector<std::uint16_t> upper(values.size());
  std::vector<std::uint16_t> lower(values.size());
  std::vector<float> joined(values.size());
  split(values, upper, lower);
  join(upper, lower, joined);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(joined[i])) << values[i];
  }
}

TEST(Split, TheUpperHalfIsTheNearest) {
  const std::vector<float> values = many_values();
  std::vector<std::uint16_t> upper(values.size());
  std::vector<std::uint16_t> lower(values.size());
  split(values, upper, lower);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const double below = of_bits(bits & 0xFFFF0000U);
    const double above = of_bits((bits & 0xFFFF0000U) + 0x10000U);
    const double found = of_bits(std::uint32_t{upper[i]} << 16U);
    if (!std::isfinite(above) || !std::isfinite(below)) continue;
    const double expected =
        std::abs(values[i] - below) < std::abs(above - values[i]) ? below : above;  // away from zero in a tie
    ASSERT_EQ(found, expected) << values[i];
  }
}

TEST(Split, NotANumberStaysOne) {
  const float value = std::numeric_limits<float>::quiet_NaN();
  std::uint16_t upper = 0;
  std::uint16_t lower = 0;
  split({&value, 1}, {&upper, 1}, {&lower, 1});
  EXPECT_TRUE(std::isnan(of_bits(std::uint32_t{upper} << 16U)));
}

// Steps on halves have the bits of steps on whole values.
TEST(Split, OptimizersDoNotNoticeIt) {
  constexpr std::size_t kCount = 70'001;
  std::vector<float> master(kCount);
  std::vector<float> gradient(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    master[i] =
        static_cast<float>(std::sin(static_cast<double>(i)) * std::pow(10.0, static_cast<double>(i % 9) - 5));
    gradient[i] = static_cast<float>(std::cos(static_cast<double>(i * 7)));
  }
  std::vector<std::uint16_t> upper(kCount);
  std::vector<std::uint16_t> lower(kCount);
  split(master, upper, lower);
  std::vector<float> moments[4] = {std::vector<float>(kCount), std::vector<float>(kCount),
                                   std::vector<float>(kCount), std::vector<float>(kCount)};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const AdamW how = {.weight_decay = 0.1F, .step = step};
    adamw(how, {.master = master, .gradient = gradient}, moments[0], moments[1]);
    adamw(how,
          {.working = reinterpret_cast<std::byte*>(upper.data()),
           .working_dtype = DType::bf16,
           .lower = lower,
           .gradient = gradient},
          moments[2], moments[3]);
  }
  std::vector<float> joined(kCount);
  join(upper, lower, joined);
  EXPECT_EQ(joined, master);
  EXPECT_EQ(moments[0], moments[2]);
  EXPECT_EQ(moments[1], moments[3]);
}

}  // namespace
}  // namespace lockstep::kernels
