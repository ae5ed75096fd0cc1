// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/parameter.h"

#include <ATen/core/grad_mode.h>

#include "lockstep/nn/additions.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

struct IntoGradient : torch::autograd::Function<IntoGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& value, const at::Tensor& gradient) {
    context->saved_data["gradient"] = gradient;
    return value.view(value.sizes());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    add_to_gradients([sum = context->saved_data["gradient"].toTensor(), addend = gradients[0]] {
      const at::NoGradGuard not_recording;
      sum.add_(addend);
    });
    return {{}, {}};
  }
};

}  // namespace

at::Tensor tracked(const Parameter& parameter) {
  return IntoGradient::apply(parameter.value, parameter.gradient);
}

}  // namespace lockstep::nn
