// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include "lockstep/kernels/compute/bias/bias.h"
#include "lockstep/kernels/compute/bias/check.h"

namespace lockstep::kernels {

void add_bias_reference(const ConstMatrix& in, const ConstMatrix& bias, const Matrix& out) {
  check_add_bias(in, bias, out);
  for (std::size_t row = 0; row < in.rows; ++row) {
    std::vector<double> values = row_values(in, row);
    add_to(values, row_values(bias, 0));
    store_row(values, out, row);
  }
}

void bias_backward_reference(const ConstMatrix& out_gradient, std::span<float> bias_gradient) {
  check_bias_gradient(out_gradient, bias_gradient);
  std::vector<double> sums(out_gradient.columns, 0.0);
  for (std::size_t row = 0; row < out_gradient.rows; ++row) add_to(sums, row_values(out_gradient, row));
  add_to(bias_gradient, sums);
}

void add_matrices_reference(const ConstMatrix& a, const ConstMatrix& b, const Matrix& out) {
  check_sum(a, b, out);
  for (std::size_t row = 0; row < a.rows; ++row) {
    std::vector<double> values = row_values(a, row);
    add_to(values, row_values(b, row));
    store_row(values, out, row);
  }
}

}  // namespace lockstep::kernels
