// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// x weight^T, plus the bias if there is one. x: [..., in], weight: [out, in], bias: [out].
at::Tensor linear(const at::Tensor& x, const Parameter& weight, const Parameter* bias = nullptr);

}  // namespace lockstep::nn
