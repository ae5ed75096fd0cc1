// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// All matrices of a call have one shape and dtype, with strides of their own. A result may be written over an
// operand. The backward passes replace the gradients and need the inputs, not the outputs, of the forward
// pass. UsageError when shapes do not fit.

// GELU as GPT-2 has it: in / 2 * (1 + tanh(sqrt(2 / pi) * (in + 0.044715 in^3))).
void gelu_forward(const ConstMatrix& in, const Matrix& out);
void gelu_backward(const ConstMatrix& in, const ConstMatrix& out_gradient, const Matrix& in_gradient);

// SwiGLU: gate * sigmoid(gate) * up.
struct SwigluInputs {
  ConstMatrix gate;
  ConstMatrix up;
};
struct SwigluGradients {
  Matrix gate;
  Matrix up;
};
void swiglu_forward(const SwigluInputs& inputs, const Matrix& out);
void swiglu_backward(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                     const SwigluGradients& gradients);

// The same in plain C++ and fp64: the twins that tests compare with.
void gelu_forward_reference(const ConstMatrix& in, const Matrix& out);
void gelu_backward_reference(const ConstMatrix& in, const ConstMatrix& out_gradient,
                             const Matrix& in_gradient);
void swiglu_forward_reference(const SwigluInputs& inputs, const Matrix& out);
void swiglu_backward_reference(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                               const SwigluGradients& gradients);

}  // namespace lockstep::kernels
