// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/activation/check.h"

#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

void check_gelu(const ConstMatrix& in, const ConstMatrix& out) {
  check_like("gelu: the output", out, in);
}

void check_gelu_gradients(const ConstMatrix& in, const ConstMatrix& out_gradient,
                          const ConstMatrix& in_gradient) {
  check_like("gelu: the gradient of the output", out_gradient, in);
  check_like("gelu: the gradient of the input", in_gradient, in);
}

void check_swiglu(const SwigluInputs& inputs, const ConstMatrix& out) {
  check_like("swiglu: up", inputs.up, inputs.gate);
  check_like("swiglu: the output", out, inputs.gate);
}

void check_swiglu_gradients(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                            const SwigluGradients& gradients) {
  check_swiglu(inputs, out_gradient);
  check_like("swiglu: the gradient of the gate", gradients.gate, inputs.gate);
  check_like("swiglu: the gradient of up", gradients.up, inputs.gate);
}

}  // namespace lockstep::kernels
