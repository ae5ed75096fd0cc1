// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/gemm/gemm.h"

#include <tuple>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"

namespace lockstep::kernels {
namespace {

struct Size {
  std::size_t rows, columns, inner;
};

Factor stored_as(const Tensor& tensor, bool transposed) {
  return {.matrix = tensor.matrix(), .transposed = transposed};
}

Tensor factor(DType dtype, std::size_t rows, std::size_t columns, bool transposed, std::uint64_t seed) {
  return transposed ? Tensor::random(dtype, columns, rows, seed, 3)
                    : Tensor::random(dtype, rows, columns, seed, 5);
}

void expect_product(DType dtype, DType result, Size size, bool ta, bool tb, Store store) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << " -> " << name_of(result) << ", " << size.rows << " x "
                                  << size.columns << " x " << size.inner << ", transposed " << ta << tb
                                  << ", add " << (store == Store::add));
  const Tensor a = factor(dtype, size.rows, size.inner, ta, 1);
  const Tensor b = factor(dtype, size.inner, size.columns, tb, 2);
  Tensor found = Tensor::random(result, size.rows, size.columns, 3, 7);
  Tensor expected = found;
  gemm(stored_as(a, ta), stored_as(b, tb), found.matrix(), store);
  gemm_reference(stored_as(a, ta), stored_as(b, tb), expected.matrix(), store);
  EXPECT_LE(relative_error(found.values(), expected.values()),
            result == DType::fp32 ? 1e-5 : tolerance(result));
}

TEST(Gemm, AgreesWithItsTwin) {
  // The last: longer than what is copied at a time where a dtype is multiplied as another.
  const Size sizes[] = {{1, 1, 1}, {3, 5, 7}, {64, 64, 64}, {130, 1000, 33}, {1000, 70, 100}, {5, 9, 9001}};
  for (DType dtype : kFloatTypes) {
    for (const Size& size : sizes) {
      for (bool ta : {false, true}) {
        for (bool tb : {false, true}) {
          expect_product(dtype, dtype, size, ta, tb, Store::replace);
          expect_product(dtype, DType::fp32, size, ta, tb, Store::add);
        }
      }
    }
  }
}

TEST(Gemm, ABiasIsAddedToEveryRow) {
  for (DType dtype : kFloatTypes) {
    for (const Size& size :
         {Size{3, 5, 7}, Size{50, 1000, 33}, Size{600, 70, 100}, Size{4, 6, 0}, Size{4, 6, 9001}}) {
      const Tensor a = Tensor::random(dtype, size.rows, size.inner, 1);
      const Tensor b = Tensor::random(dtype, size.columns, size.inner, 2);
      const Tensor bias = Tensor::random(dtype, 1, size.columns, 3);
      Tensor found(dtype, size.rows, size.columns, 1);
      Tensor expected = found;
      gemm_with_bias({a.matrix()}, transposed(b.matrix()), bias.matrix(), found.matrix());
      gemm_with_bias_reference({a.matrix()}, transposed(b.matrix()), bias.matrix(), expected.matrix());
      EXPECT_LE(relative_error(found.values(), expected.values()),
                dtype == DType::fp32 ? 1e-5 : tolerance(dtype));
    }
  }
}

TEST(Gemm, TouchesNothingBetweenTheRows) {
  const Tensor a = Tensor::random(DType::bf16, 9, 4, 1);
  const Tensor b = Tensor::random(DType::bf16, 4, 5, 2);
  Tensor c(DType::fp32, 9, 5, 3);
  gemm({a.matrix()}, {b.matrix()}, c.matrix());
  for (std::size_t row = 0; row < 9; ++row) {
    const std::byte* gap = c.matrix().row(row) + 5 * sizeof(float);
    for (std::size_t i = 0; i < 3 * sizeof(float); ++i) EXPECT_EQ(gap[i], std::byte{0x5A});
  }
}

TEST(Gemm, NothingTimesNothingIsZero) {
  const Tensor a(DType::fp32, 2, 0);
  const Tensor b(DType::fp32, 0, 3);
  Tensor c = Tensor::random(DType::fp32, 2, 3, 1);
  const std::vector<float> before = c.values();
  gemm({a.matrix()}, {b.matrix()}, c.matrix(), Store::add);
  EXPECT_EQ(c.values(), before);
  gemm({a.matrix()}, {b.matrix()}, c.matrix());
  EXPECT_EQ(c.values(), std::vector<float>(6, 0.0F));
}

TEST(Gemm, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    for (const Size& size : {Size{700, 900, 300}, Size{40, 2000, 64}, Size{512, 48, 700}}) {
      for (bool ta : {false, true}) {
        const Tensor a = factor(dtype, size.rows, size.inner, ta, 1);
        const Tensor b = factor(dtype, size.inner, size.columns, false, 2);
        expect_same_for_any_threads([&] {
          Tensor c = Tensor::random(DType::fp32, size.rows, size.columns, 3);
          gemm(stored_as(a, ta), stored_as(b, false), c.matrix(), Store::add);
          return c.bytes();
        });
        const Tensor bias = Tensor::random(dtype, 1, size.columns, 4);
        expect_same_for_any_threads([&] {
          Tensor plain(dtype, size.rows, size.columns), biased = plain;
          gemm(stored_as(a, ta), stored_as(b, false), plain.matrix());
          gemm_with_bias(stored_as(a, ta), stored_as(b, false), bias.matrix(), biased.matrix());
          return joined({plain.bytes(), biased.bytes()});
        });
      }
    }
  }
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Tensor a(DType::bf16, 2, 3);
  const Tensor wide(DType::fp32, 3, 4);
  const Tensor b(DType::bf16, 3, 4);
  Tensor c(DType::bf16, 2, 4);
  Tensor small(DType::bf16, 2, 3);
  EXPECT_THROW(gemm({a.matrix()}, {b.matrix()}, small.matrix()), UsageError);
  EXPECT_THROW(gemm({a.matrix()}, {wide.matrix()}, c.matrix()), UsageError);
  EXPECT_THROW(gemm({a.matrix()}, {b.matrix()}, c.matrix(), Store::add), UsageError);
  EXPECT_THROW(gemm_with_bias({a.matrix()}, {b.matrix()}, a.matrix(), c.matrix()), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
