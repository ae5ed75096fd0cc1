// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// One tensor that is trained. Functions read `value` and, on the way back, add to `gradient`, which is fp32
// whatever the dtype of the value: autograd itself never holds the gradient of a parameter. `value` is a leaf
// that requires a gradient, so that what is computed from it is recorded even if nothing else requires one.
struct Parameter {
  std::string name;
  at::Tensor value;
  at::Tensor gradient;
  // When several lanes (lanes.h) share it: the gradients of the lanes here, each of that lane's run of
  // tokens. Then `gradient` is not used; the sum over all lanes is the gradient.
  std::vector<at::Tensor> by_lane = {};
};

// The value for use in plain ATen code: the gradient that comes back through it is added to
// parameter.gradient.
at::Tensor tracked(const Parameter& parameter);

}  // namespace lockstep::nn
