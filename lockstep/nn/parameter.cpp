// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/parameter.h"

#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

struct IntoGradient : torch::autograd::Function<IntoGradient> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& value, const at::Tensor& gradient) {
    context->saved_data["gradient"] = gradient;
    return value.view(value.sizes());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    context->saved_data["gradient"].toTensor().add_(gradients[0]);
    return {{}, {}};
  }
};

}  // namespace

at::Tensor tracked(const Parameter& parameter) {
  return IntoGradient::apply(parameter.value, parameter.gradient);
}

}  // namespace lockstep::nn
