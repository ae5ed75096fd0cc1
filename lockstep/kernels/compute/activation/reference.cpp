// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include <cmath>
#include <numbers>

#include "lockstep/kernels/compute/activation/activation.h"
#include "lockstep/kernels/compute/activation/check.h"

namespace lockstep::kernels {
namespace {

const double kRoot = std::sqrt(2.0 / std::numbers::pi);
constexpr double kCubic = 0.044715;

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace

void gelu_forward_reference(const ConstMatrix& in, const Matrix& out) {
  check_gelu(in, out);
  for (std::size_t row = 0; row < in.rows; ++row) {
    std::vector<double> values = row_values(in, row);
    for (double& x : values) x = 0.5 * x * (1.0 + std::tanh(kRoot * (x + kCubic * x * x * x)));
    store_row(values, out, row);
  }
}

void gelu_backward_reference(const ConstMatrix& in, const ConstMatrix& out_gradient,
                             const Matrix& in_gradient) {
  check_gelu_gradients(in, out_gradient, in_gradient);
  for (std::size_t row = 0; row < in.rows; ++row) {
    const std::vector<double> values = row_values(in, row);
    std::vector<double> gradients = row_values(out_gradient, row);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i];
      const double t = std::tanh(kRoot * (x + kCubic * x * x * x));
      gradients[i] *= 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kRoot * (1.0 + 3.0 * kCubic * x * x);
    }
    store_row(gradients, in_gradient, row);
  }
}

void swiglu_forward_reference(const SwigluInputs& inputs, const Matrix& out) {
  check_swiglu(inputs, out);
  for (std::size_t row = 0; row < out.rows; ++row) {
    const std::vector<double> gate = row_values(inputs.gate, row);
    std::vector<double> values = row_values(inputs.up, row);
    for (std::size_t i = 0; i < gate.size(); ++i) values[i] *= gate[i] * sigmoid(gate[i]);
    store_row(values, out, row);
  }
}

void swiglu_backward_reference(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                               const SwigluGradients& gradients) {
  check_swiglu_gradients(inputs, out_gradient, gradients);
  for (std::size_t row = 0; row < out_gradient.rows; ++row) {
    std::vector<double> gate = row_values(inputs.gate, row);
    std::vector<double> up = row_values(inputs.up, row);
    const std::vector<double> dout = row_values(out_gradient, row);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double s = sigmoid(gate[i]);
      const double silu = gate[i] * s;
      gate[i] = dout[i] * up[i] * (s + silu * (1.0 - s));
      up[i] = dout[i] * silu;
    }
    store_row(gate, gradients.gate, row);
    store_row(up, gradients.up, row);
  }
}

}  // namespace lockstep::kernels
