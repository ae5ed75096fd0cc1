// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// The tanh form, as GPT-2 uses it.
at::Tensor gelu(const at::Tensor& x);

// silu(gate) * up
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace lockstep::nn
