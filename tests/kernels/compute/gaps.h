// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "tests/kernels/compute/tensors.h"

namespace lockstep::kernels {

// The bytes between the rows of a tensor must be as Tensor made them.
inline void expect_gaps_untouched(const Tensor& tensor) {
  const ConstMatrix matrix = tensor.matrix();
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    const std::byte* gap = matrix.row(row) + matrix.columns * size_of(matrix.dtype);
    for (std::size_t i = 0; i < (matrix.stride - matrix.columns) * size_of(matrix.dtype); ++i)
      ASSERT_EQ(gap[i], std::byte{0x5A}) << "after row " << row;
  }
}

// The bytes of all, one after the other.
inline std::vector<std::byte> joined(std::initializer_list<std::vector<std::byte>> parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
inline std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(float)};
}

}  // namespace lockstep::kernels
