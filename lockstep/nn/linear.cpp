// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include "lockstep/kernels/compute/bias/bias.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/nn/additions.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

using kernels::Store;
using kernels::transposed;
using SharedAdditions = std::shared_ptr<Additions>;

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& weight_gradient, const OptionalTensor& bias,
                            const OptionalTensor& bias_gradient, const SharedAdditions& additions) {
    const at::Tensor rows = as_rows(x);
    context->save_for_backward({rows, weight});
    context->saved_data["wants_input"] = x.requires_grad();
    context->saved_data["weight_gradient"] = weight_gradient;
    if (bias) context->saved_data["bias_gradient"] = *bias_gradient;
    context->saved_data["additions"] = keep(additions);
    at::Tensor y = at::empty(sizes_with_last(x, weight.size(0)), x.options());
    if (bias) {
      kernels::gemm_with_bias({matrix_of(rows)}, transposed(matrix_of(weight)), matrix_of(*bias),
                              matrix_of(y));
    } else {
      kernels::gemm({matrix_of(rows)}, transposed(matrix_of(weight)), matrix_of(y));
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor dy = as_rows(gradients[0]);
    add_to_gradients(
        // Detached: x refers to the functions before it, and these to the additions.
        [dy, x = saved[0].detach(), weight_gradient = context->saved_data["weight_gradient"].toTensor(),
         bias_gradient = bias_gradient_of(context)] {
          kernels::gemm(transposed(matrix_of(dy)), {matrix_of(x)}, matrix_of(weight_gradient), Store::add);
          if (bias_gradient.defined()) kernels::bias_backward(matrix_of(dy), floats_of(bias_gradient));
        },
        kept<SharedAdditions>(context->saved_data["additions"]).get());
    at::Tensor dx;
    if (context->saved_data["wants_input"].toBool()) {
      dx = at::empty(sizes_with_last(dy, weight.size(1)), dy.options());
      kernels::gemm({matrix_of(dy)}, {matrix_of(weight)}, matrix_of(dx));
    }
    return {dx, {}, {}, {}, {}, {}};
  }

  static at::Tensor bias_gradient_of(AutogradContext* context) {
    const auto found = context->saved_data.find("bias_gradient");
    return found == context->saved_data.end() ? at::Tensor() : found->second.toTensor();
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const Parameter& weight, const Parameter* bias,
                  const SharedAdditions& additions) {
  if (!has_kernels(x)) return at::linear(x, tracked(weight), bias != nullptr ? tracked(*bias) : at::Tensor());
  return Linear::apply(x, weight.value, weight.gradient, value_of(bias), gradient_of(bias), additions);
}

}  // namespace lockstep::nn
