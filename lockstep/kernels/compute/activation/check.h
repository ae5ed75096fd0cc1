// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/activation/activation.h"

namespace lockstep::kernels {

// UsageError unless all have the shape and dtype of the input (the gate).
void check_gelu(const ConstMatrix& in, const ConstMatrix& out);
void check_gelu_gradients(const ConstMatrix& in, const ConstMatrix& out_gradient,
                          const ConstMatrix& in_gradient);
void check_swiglu(const SwigluInputs& inputs, const ConstMatrix& out);
void check_swiglu_gradients(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                            const SwigluGradients& gradients);

}  // namespace lockstep::kernels
