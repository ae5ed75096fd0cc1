// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/tensor_view.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::nn {
namespace {

// ATen gives dimensions of size 1 any stride, and calls the tensor contiguous.
TEST(TensorView, DimensionsOfSizeOneMayHaveAnyStride) {
  for (const bool first : {true, false}) {
    const at::Tensor values = at::zeros({first ? 1 : 3, first ? 3 : 1, 4}, at::kFloat);
    const at::Tensor odd = values.as_strided(values.sizes(), {first ? 7 : 4, first ? 4 : 7, 1});
    ASSERT_TRUE(odd.is_contiguous());
    ASSERT_TRUE(is_rows(odd));
    const kernels::Matrix matrix = matrix_of(odd);
    EXPECT_EQ(matrix.rows, 3U);
    EXPECT_EQ(matrix.columns, 4U);
    EXPECT_EQ(matrix.stride, 4U);
  }
}

TEST(TensorView, RowsMayBeFartherApart) {
  const at::Tensor part = at::zeros({2, 3, 10}, at::kFloat).narrow(2, 2, 4);
  ASSERT_TRUE(is_rows(part));
  EXPECT_EQ(matrix_of(part).rows, 6U);
  EXPECT_EQ(matrix_of(part).stride, 10U);
  EXPECT_EQ(matrix_of(part.narrow(0, 0, 1).narrow(1, 0, 1)).stride, 4U) << "one row is followed by none";
}

TEST(TensorView, KnowsWhatAreNoRows) {
  EXPECT_FALSE(is_rows(at::zeros({}, at::kFloat)));
  EXPECT_FALSE(is_rows(at::zeros({3, 4}, at::kFloat).t()));
  EXPECT_FALSE(is_rows(at::zeros({2, 3, 4}, at::kFloat).narrow(1, 0, 2))) << "unequal distances";
  EXPECT_FALSE(is_rows(at::zeros({1, 4}, at::kFloat).expand({3, 4}))) << "rows on top of each other";
}

}  // namespace
}  // namespace lockstep::nn
