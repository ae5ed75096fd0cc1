// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// A factor of a product: a matrix, or its transpose.
struct Factor {
  ConstMatrix matrix;
  bool transposed = false;

  std::size_t rows() const { return transposed ? matrix.columns : matrix.rows; }
  std::size_t columns() const { return transposed ? matrix.rows : matrix.columns; }
};

inline Factor transposed(ConstMatrix matrix) {
  return {.matrix = matrix, .transposed = true};
}

enum class Store : std::uint8_t { replace, add };

// c = a b, or c += a b. The factors have one dtype; c has it too or is fp32. Products are added in fp32, in
// an order that depends on the shapes only, not on the number of threads. `add` into bf16 or fp16 is not
// offered: what is accumulated must be fp32. UsageError when the shapes do not fit.
void gemm(const Factor& a, const Factor& b, const Matrix& c, Store store = Store::replace);

// c = a b + bias, the bias (one row, of the dtype of the factors) added to every row before rounding.
void gemm_with_bias(const Factor& a, const Factor& b, const ConstMatrix& bias, const Matrix& c);

// The same in plain C++, sums in fp64: the twins that tests compare with.
void gemm_reference(const Factor& a, const Factor& b, const Matrix& c, Store store = Store::replace);
void gemm_with_bias_reference(const Factor& a, const Factor& b, const ConstMatrix& bias, const Matrix& c);

}  // namespace lockstep::kernels
