// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/additions.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// x weight^T, plus the bias if there is one. x: [..., in], weight: [out, in], bias: [out]. On the way back
// our kernels leave their additions to the gradients in `additions`, if they are given (Fan::additions).
at::Tensor linear(const at::Tensor& x, const Parameter& weight, const Parameter* bias = nullptr,
                  const std::shared_ptr<Additions>& additions = nullptr);

}  // namespace lockstep::nn
