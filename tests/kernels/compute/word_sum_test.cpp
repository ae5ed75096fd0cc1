// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/word_sum.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(5);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

using WordSumOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, WordSumOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(WordSumOnEveryTarget, AgreesWithItsTwinWhereverTheMemoryBegins) {
  const std::vector<std::byte> memory = random_bytes(1 << 16);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; size < 600; ++size) {
      const ConstBytes part = ConstBytes(memory).subspan(begin, size);
      ASSERT_EQ(word_sum(part), word_sum_reference(part)) << begin << " " << size;
    }
    const ConstBytes rest = ConstBytes(memory).subspan(begin);
    EXPECT_EQ(word_sum(rest), word_sum_reference(rest));
  }
}

TEST_P(WordSumOnEveryTarget, ChangesWithAnyBit) {
  std::vector<std::byte> memory = random_bytes(517);
  const std::uint64_t sum = word_sum(memory);
  for (std::size_t bit = 0; bit < 8 * memory.size(); ++bit) {
    const auto flipped = static_cast<std::byte>(1U << bit % 8);
    memory[bit / 8] ^= flipped;
    ASSERT_NE(word_sum(memory), sum) << bit;
    memory[bit / 8] ^= flipped;
  }
}

TEST(WordSum, OfPartsAddsUp) {
  const std::vector<std::byte> memory = random_bytes(1003);
  const ConstBytes all(memory);
  EXPECT_EQ(word_sum(all.first(400)) + word_sum(all.subspan(400)), word_sum(all));
}

TEST(WordSum, IsThatOfNumbersInThisOrderOfBytes) {
  const std::uint64_t numbers[] = {1, 2, ~std::uint64_t{0}};
  EXPECT_EQ(word_sum(std::as_bytes(std::span(numbers))), 2U);
}

}  // namespace
}  // namespace lockstep::kernels
