// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// Both over the last dimension.
at::Tensor layer_norm(const at::Tensor& x, const Parameter& weight, const Parameter& bias, float epsilon);
at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, float epsilon);

}  // namespace lockstep::nn
