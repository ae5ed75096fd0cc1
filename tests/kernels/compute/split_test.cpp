// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/split.h"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/kernels/float16.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"

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

struct RoundTrip {
  std::vector<std::uint16_t> upper;
  std::vector<float> joined;  // with the lower ones
};

RoundTrip split_and_joined(const std::vector<float>& values) {
  RoundTrip trip = {std::vector<std::uint16_t>(values.size()), std::vector<float>(values.size())};
  std::vector<std::uint16_t> lower(values.size());
  split(values, trip.upper, lower);
  join(trip.upper, lower, trip.joined);
  return trip;
}

TEST(Split, JoinsToTheSameBits) {
  const std::vector<float> values = many_values();
  const std::vector<float> joined = split_and_joined(values).joined;
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

// Payloads at which rounding would carry into the exponent or the sign are among them.
TEST(Split, EveryNanBecomesTheQuietOne) {
  std::vector<float> values;
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t high = 0x7F80; high <= 0x7FFF; ++high) {
      for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
        const float value = of_bits(sign | high << 16U | low);
        if (std::isnan(value)) values.push_back(value);
      }
    }
  }
  const auto [upper, joined] = split_and_joined(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    ASSERT_EQ(upper[i], bf16_of_float(values[i])) << std::hex << bits;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(joined[i]), kNanFp32) << std::hex << bits;
  }
}

constexpr std::size_t kCount = 70'001;

std::vector<float> some_weights() {
  std::vector<float> weights(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    weights[i] =
        static_cast<float>(std::sin(static_cast<double>(i)) * std::pow(10.0, static_cast<double>(i % 9) - 5));
  }
  return weights;
}

std::vector<float> some_gradient() {
  std::vector<float> gradient(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    gradient[i] = static_cast<float>(std::cos(static_cast<double>(i * 7)));
  return gradient;
}

// Weights in halves and what an optimizer remembers of them.
struct Halves {
  Halves() { split(some_weights(), upper, lower); }
  Parameters parameters(std::span<const float> gradient) {
    return {.working = reinterpret_cast<std::byte*>(upper.data()),
            .working_dtype = DType::bf16,
            .lower = lower,
            .gradient = gradient};
  }
  std::vector<float> weights() const {
    std::vector<float> joined(kCount);
    join(upper, lower, joined);
    return joined;
  }

  std::vector<std::uint16_t> upper = std::vector<std::uint16_t>(kCount), lower = upper;
  std::vector<float> first = std::vector<float>(kCount), second = first;
};

constexpr Sgd kSgd = {.momentum = 0.9F, .weight_decay = 0.1F};

// Steps on halves have the bits of steps on whole values.
TEST(Split, AdamwDoesNotNoticeIt) {
  const std::vector<float> gradient = some_gradient();
  std::vector<float> master = some_weights(), first(kCount), second(kCount);
  Halves halves;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const AdamW how = {.weight_decay = 0.1F, .step = step};
    adamw(how, {.master = master, .gradient = gradient}, first, second);
    adamw(how, halves.parameters(gradient), halves.first, halves.second);
  }
  EXPECT_EQ(halves.weights(), master);
  EXPECT_EQ(halves.first, first);
  EXPECT_EQ(halves.second, second);
}

TEST(Split, SgdDoesNotNoticeIt) {
  const std::vector<float> gradient = some_gradient();
  std::vector<float> master = some_weights(), momentum(kCount);
  Halves halves;
  for (int step = 0; step < 3; ++step) {
    sgd(kSgd, {.master = master, .gradient = gradient}, momentum);
    sgd(kSgd, halves.parameters(gradient), halves.first);
  }
  EXPECT_EQ(halves.weights(), master);
  EXPECT_EQ(halves.first, momentum);
}

TEST(Split, BitsOfAnUpdateDoNotDependOnTheNumberOfThreads) {
  const std::vector<float> gradient = some_gradient();
  expect_same_for_any_threads([&] {
    Halves adam, plain;
    adamw({.weight_decay = 0.1F}, adam.parameters(gradient), adam.first, adam.second);
    sgd(kSgd, plain.parameters(gradient), plain.first);
    return joined({bytes_of(adam.weights()), bytes_of(adam.first), bytes_of(adam.second),
                   bytes_of(plain.weights()), bytes_of(plain.first)});
  });
}

}  // namespace
}  // namespace lockstep::kernels
