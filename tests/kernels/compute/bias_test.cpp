// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/bias/bias.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

struct Size {
  std::size_t rows, columns;
};
// Among them more rows than blocks of the smallest size, and more columns than are added together.
constexpr Size kSizes[] = {{0, 5}, {1, 1}, {7, 33}, {1500, 21}, {40, 1200}};

void expect_same_as_twins(DType dtype, Size size) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << size.rows << " x " << size.columns);
  const Tensor a = Tensor::random(dtype, size.rows, size.columns, 1, 3);
  const Tensor b = Tensor::random(dtype, size.rows, size.columns, 2, 4);
  const Tensor bias = Tensor::random(dtype, 1, size.columns, 3);
  Tensor found(dtype, size.rows, size.columns, 2);
  Tensor expected = found;
  // A sum of two is rounded once: the bits are those of the twin.
  add_bias(a.matrix(), bias.matrix(), found.matrix());
  add_bias_reference(a.matrix(), bias.matrix(), expected.matrix());
  EXPECT_EQ(found.values(), expected.values());
  add_matrices(a.matrix(), b.matrix(), found.matrix());
  add_matrices_reference(a.matrix(), b.matrix(), expected.matrix());
  EXPECT_EQ(found.values(), expected.values());
  expect_gaps_untouched(found);

  std::vector<float> sums(size.columns, 0.5F);
  std::vector<float> expected_sums = sums;
  bias_backward(a.matrix(), sums);
  bias_backward_reference(a.matrix(), expected_sums);
  EXPECT_LE(relative_error(sums, expected_sums), 2e-6);
}

using BiasOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, BiasOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(BiasOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (const Size& size : kSizes) expect_same_as_twins(dtype, size);
  }
}

TEST(Bias, SumsMayReplaceAnOperand) {
  for (DType dtype : kFloatTypes) {
    const Tensor a = Tensor::random(dtype, 5, 40, 1);
    Tensor over = Tensor::random(dtype, 5, 40, 2);
    Tensor apart(dtype, 5, 40);
    add_matrices(a.matrix(), over.matrix(), apart.matrix());
    add_matrices(a.matrix(), over.matrix(), over.matrix());
    EXPECT_EQ(over.values(), apart.values());
  }
}

TEST(Bias, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    const Tensor a = Tensor::random(dtype, 777, 600, 1);
    expect_same_for_any_threads([&] {
      std::vector<float> sums(600, 0.25F);
      bias_backward(a.matrix(), sums);
      Tensor twice(dtype, 777, 600);
      add_matrices(a.matrix(), a.matrix(), twice.matrix());
      return joined({bytes_of(sums), twice.bytes()});
    });
  }
}

TEST(Bias, RefusesWhatDoesNotFit) {
  const Tensor a(DType::bf16, 2, 3);
  const Tensor two_rows(DType::bf16, 2, 3);
  const Tensor integers(DType::int32, 2, 3);
  Tensor out(DType::bf16, 2, 3);
  Tensor wide(DType::fp32, 2, 3);
  std::vector<float> sums(2);
  EXPECT_THROW(add_bias(a.matrix(), two_rows.matrix(), out.matrix()), UsageError);
  EXPECT_THROW(add_matrices(a.matrix(), a.matrix(), wide.matrix()), UsageError);
  EXPECT_THROW(bias_backward(a.matrix(), sums), UsageError);
  sums.resize(3);
  EXPECT_THROW(bias_backward(integers.matrix(), sums), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
