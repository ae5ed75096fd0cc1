// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// All matrices of a call have one dtype, with strides of their own. UsageError when shapes do not fit.

// Adds the one row of `bias` to each row. `out` may be `in`.
void add_bias(const ConstMatrix& in, const ConstMatrix& bias, const Matrix& out);
// Adds the sums of the columns to bias_gradient, in an order that depends on the number of rows only.
void bias_backward(const ConstMatrix& out_gradient, std::span<float> bias_gradient);

// out = a + b, as at the end of a residual branch. `out` may be one of them.
void add_matrices(const ConstMatrix& a, const ConstMatrix& b, const Matrix& out);

// The same in plain C++, sums in fp64: the twins that tests compare with.
void add_bias_reference(const ConstMatrix& in, const ConstMatrix& bias, const Matrix& out);
void bias_backward_reference(const ConstMatrix& out_gradient, std::span<float> bias_gradient);
void add_matrices_reference(const ConstMatrix& a, const ConstMatrix& b, const Matrix& out);

}  // namespace lockstep::kernels
