// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/dropout/dropout.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/kernels/compute/dropout/row.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

constexpr Dropout kSome = {.probability = 0.3F, .key = 0x123456789ABCDEF0, .stream = 0xFEDCBA9876543210};

using DropoutOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, DropoutOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(DropoutOnEveryTarget, TakesItsNumbersFromPhilox) {
  constexpr std::size_t kCounters = 70;
  for (std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xFFFFFFE0}, std::uint64_t{0x7FFFFFFF0}}) {
    std::vector<std::uint32_t> found(4 * kCounters);
    random_numbers(kSome.key, kSome.stream, first, found);
    for (std::size_t i = 0; i < kCounters; ++i) {
      const std::uint64_t counter = first + i;
      const PhiloxCounter expected =
          philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0x76543210,
                  0xFEDCBA98},
                 {0x9ABCDEF0, 0x12345678});
      for (std::size_t word = 0; word < 4; ++word)
        ASSERT_EQ(found[4 * i + word], expected[word]) << first << " + " << i;
    }
  }
}

TEST_P(DropoutOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (const auto& [rows, columns] : {std::pair{0, 3}, {1, 1}, {7, 33}, {50, 258}}) {
      const Tensor in = Tensor::random(dtype, rows, columns, 1, 3);
      Tensor found(dtype, rows, columns, 2);
      Tensor expected = found;
      dropout(kSome, in.matrix(), found.matrix());
      dropout_reference(kSome, in.matrix(), expected.matrix());
      EXPECT_LE(relative_error(found.values(), expected.values()), tolerance(dtype));
      expect_gaps_untouched(found);
    }
  }
}

std::vector<float> kept(const Dropout& which, std::size_t rows, std::size_t columns) {
  std::vector<float> ones(rows * columns, 1.0F);
  const Matrix matrix = matrix_of(ones.data(), DType::fp32, rows, columns);
  dropout(which, matrix, matrix);
  return ones;
}

TEST(Dropout, KeepsTheMean) {
  const std::vector<float> values = kept(kSome, 100, 1000);
  double sum = 0;
  for (float value : values) {
    ASSERT_TRUE(value == 0.0F || value == 1.0F / 0.7F);
    sum += value;
  }
  EXPECT_NEAR(sum / 1e5, 1.0, 0.01);  // five standard deviations
}

TEST(Dropout, DependsOnKeyStreamAndPlaceOnly) {
  EXPECT_EQ(kept(kSome, 12, 35), kept(kSome, 35, 12));
  Dropout other = kSome;
  other.stream += 1;
  EXPECT_NE(kept(kSome, 12, 35), kept(other, 12, 35));
  other = kSome;
  other.key += 1;
  EXPECT_NE(kept(kSome, 12, 35), kept(other, 12, 35));
}

TEST(Dropout, OfAPartIsThePartOfTheWhole) {
  const std::vector<float> whole = kept(kSome, 12, 35);
  Dropout from_the_fifth_row = kSome;
  from_the_fifth_row.first = std::uint64_t{5} * 35;
  EXPECT_EQ(kept(from_the_fifth_row, 7, 35), std::vector<float>(whole.begin() + 5 * 35, whole.end()));
}

TEST(Dropout, WithProbabilityZeroIsTheIdentity) {
  const std::vector<float> values = kept({.probability = 0.0F, .key = 1, .stream = 2}, 9, 9);
  EXPECT_EQ(values, std::vector<float>(81, 1.0F));
}

TEST(Dropout, WhatFallsAwayIsZeroWhateverItWas) {
  std::vector<float> values(100, std::nanf(""));
  const Matrix matrix = matrix_of(values.data(), DType::fp32, 10, 10);
  dropout({.probability = 0.5F, .key = 1, .stream = 2}, matrix, matrix);
  EXPECT_GT(std::count(values.begin(), values.end(), 0.0F), 20);
}

TEST(Dropout, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    const Tensor in = Tensor::random(dtype, 200, 77, 1);
    expect_same_for_any_threads([&] {
      Tensor out(dtype, 200, 77);
      dropout(kSome, in.matrix(), out.matrix());
      return out.bytes();
    });
  }
}

TEST(Dropout, RefusesWhatDoesNotFit) {
  Tensor in(DType::bf16, 2, 3);
  Tensor wide(DType::fp32, 2, 3);
  EXPECT_THROW(dropout(kSome, in.matrix(), wide.matrix()), UsageError);
  for (float probability : {-0.1F, 1.0F, std::nanf("")}) {
    EXPECT_THROW(dropout({.probability = probability, .key = 1, .stream = 2}, in.matrix(), in.matrix()),
                 UsageError);
  }
}

}  // namespace
}  // namespace lockstep::kernels
