// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/convert.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/threads.h"
#include "lockstep/kernels/float16.h"

#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

std::vector<std::uint16_t> all_bits() {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

void expect_all_widened(DType dtype, float (*one)(std::uint16_t)) {
  const std::vector<std::uint16_t> bits = all_bits();
  std::vector<float> found(bits.size());
  to_floats(reinterpret_cast<const std::byte*>(bits.data()), dtype, found);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const float expected = one(bits[i]);
    if (expected != expected) {
      EXPECT_NE(found[i], found[i]) << i;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected)) << i;
    }
  }
}

using ConvertOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, ConvertOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(ConvertOnEveryTarget, WidensEveryValue) {
  expect_all_widened(DType::bf16, float_of_bf16);
  expect_all_widened(DType::fp16, float_of_fp16);
}

void expect_narrowed(DType dtype, std::uint16_t (*one)(float)) {
  std::mt19937 generator(7);
  std::vector<float> values = {0.0F, -0.0F, 1e38F, -3.4e38F, 65504.0F, 65520.0F, 1e-40F, 6e-8F, 2.9e-8F};
  for (int i = 0; i < 100'000; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(generator())));
  std::vector<std::uint16_t> found(values.size());
  from_floats(values, reinterpret_cast<std::byte*>(found.data()), dtype);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(found[i], one(values[i])) << values[i];
}

TEST_P(ConvertOnEveryTarget, NarrowsToNearestEven) {
  expect_narrowed(DType::bf16, bf16_of_float);
  expect_narrowed(DType::fp16, fp16_of_float);
}

TEST(Convert, LeavesFloatsAlone) {
  const std::vector<float> values = {1.5F, -2.0F, 3e-39F};
  std::vector<float> copy(values.size());
  from_floats(values, reinterpret_cast<std::byte*>(copy.data()), DType::fp32);
  EXPECT_EQ(std::memcmp(values.data(), copy.data(), sizeof(float) * values.size()), 0);
}

// As within the kernels: the threads share the rows.
TEST(Convert, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    const Tensor from = Tensor::random(dtype, 777, 601, 1);
    expect_same_for_any_threads([&] {
      Tensor floats(DType::fp32, 777, 601), back(dtype, 777, 601);
      parallel_for(777, [&](std::size_t row) {
        const std::span<float> values(reinterpret_cast<float*>(floats.matrix().row(row)), 601);
        to_floats(from.matrix().row(row), dtype, values);
        from_floats(values, back.matrix().row(row), dtype);
      });
      EXPECT_EQ(back.bytes(), from.bytes());
      return floats.bytes();
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels
