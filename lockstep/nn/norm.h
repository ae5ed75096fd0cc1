// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// Both over the last dimension. With several lanes `x` holds the tokens that lie here (Lanes::held), and the
// lanes share the parameters.
at::Tensor layer_norm(const at::Tensor& x, const Parameter& weight, const Parameter& bias, float epsilon,
                      const Lanes& lanes = {});
at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, float epsilon, const Lanes& lanes = {});

}  // namespace lockstep::nn
