// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

inline void check_add_bias(const ConstMatrix& in, const ConstMatrix& bias, const ConstMatrix& out) {
  check_matrix("add_bias: the bias", bias, 1, in.columns, in.dtype);
  check_like("add_bias: the output", out, in);
}

inline void check_bias_gradient(const ConstMatrix& out_gradient, std::span<const float> bias_gradient) {
  check_floating("bias: the gradient of the output", out_gradient);
  check_count("bias: the gradients of biases", bias_gradient.size(), out_gradient.columns);
}

inline void check_sum(const ConstMatrix& a, const ConstMatrix& b, const ConstMatrix& out) {
  check_like("add: the second operand", b, a);
  check_like("add: the output", out, a);
}

}  // namespace lockstep::kernels
