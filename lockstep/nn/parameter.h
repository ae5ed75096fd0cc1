// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// One tensor that is trained. Functions read `value` and, on the way back, add to `gradient`, which is fp32
// whatever the dtype of the value: autograd itself never holds the gradient of a parameter. `value` is a leaf
// that requires a gradient, so that what is computed from it is recorded even if nothing else requires one.
// With several lanes (lanes.h) a parameter that all of them share has one gradient for each lane that is
// computed here, in a dimension before those of the value: of that lane's run of tokens. Their sum over all
// lanes is the gradient.
struct Parameter {
  std::string name;
  at::Tensor value;
  at::Tensor gradient;
};

// The value for use in plain ATen code: the gradient that comes back through it is added to
// parameter.gradient.
at::Tensor tracked(const Parameter& parameter);

}  // namespace lockstep::nn
