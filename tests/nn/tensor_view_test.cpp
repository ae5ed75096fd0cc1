// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/tensor_view.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace lockstep::nn {
namespace {

TEST(TensorView, RowsMayBeApart) {
  const at::Tensor x = at::empty({2, 3, 8}).narrow(2, 1, 5);
  ASSERT_TRUE(is_rows(x));
  const kernels::Matrix matrix = matrix_of(x);
  EXPECT_EQ(matrix.rows, 6U);
  EXPECT_EQ(matrix.columns, 5U);
  EXPECT_EQ(matrix.stride, 8U);
  EXPECT_FALSE(is_rows(at::empty({2, 3, 8}).narrow(1, 1, 2)));
  EXPECT_FALSE(is_rows(at::empty({3, 8}).t()));
}

// As they come out of a reshape: libtorch calls such tensors contiguous.
TEST(TensorView, ADimensionOfOneElementMayHaveAnyStride) {
  for (const auto& [sizes, strides] :
       {std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>{{1, 5, 8}, {3, 8, 1}},
        {{5, 1, 8}, {8, 77, 1}},
        {{5, 1, 1, 8}, {8, 3, 77, 1}},
        {{5, 1}, {1, 77}}}) {
    const at::Tensor x = at::empty({400}).as_strided(sizes, strides);
    ASSERT_TRUE(x.is_contiguous() && is_rows(x));
    EXPECT_EQ(matrix_of(x).rows, 5U);
    EXPECT_EQ(matrix_of(x).stride, static_cast<std::size_t>(sizes.back()));
  }
  EXPECT_EQ(matrix_of(at::empty({400}).as_strided({1, 1, 8}, {5, 5, 1})).stride, 8U);
}

}  // namespace
}  // namespace lockstep::nn
