// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>

#include "lockstep/kernels/compute/norm/norm.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

using kernels::NormKind;

kernels::Norm norm_of(bool rms, double epsilon, const at::Tensor& weight, const at::Tensor& bias) {
  kernels::Norm norm = {.kind = rms ? NormKind::rms : NormKind::layer,
                        .epsilon = static_cast<float>(epsilon),
                        .weight = matrix_of(weight),
                        .bias = {}};
  if (bias.defined()) norm.bias = matrix_of(bias);
  return norm;
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& weight_gradient, const OptionalTensor& bias,
                            const OptionalTensor& bias_gradient, double epsilon) {
    const at::Tensor in = as_rows(x);
    const bool rms = !bias;
    const std::int64_t rows = x.numel() / x.size(-1);
    const at::Tensor statistics = at::empty({2, rows}, x.options().dtype(at::kFloat));
    at::Tensor out = at::empty(x.sizes(), x.options());
    const at::Tensor bias_row = bias ? *bias : at::Tensor();
    kernels::norm_forward(norm_of(rms, epsilon, weight, bias_row), matrix_of(in), matrix_of(out),
                          {floats_of(statistics[0]), floats_of(statistics[1])});
    context->save_for_backward({in, weight, bias_row, statistics});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["weight_gradient"] = weight_gradient;
    if (!rms) context->saved_data["bias_gradient"] = *bias_gradient;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& in = saved[0];
    const bool rms = !saved[2].defined();
    const at::Tensor dout = as_rows(gradients[0]);
    at::Tensor dx = at::empty(in.sizes(), in.options());
    const at::Tensor& statistics = saved[3];
    kernels::norm_backward(
        norm_of(rms, context->saved_data["epsilon"].toDouble(), saved[1], saved[2]), matrix_of(in),
        matrix_of(dout), {floats_of(statistics[0]), floats_of(statistics[1])},
        {.in = matrix_of(dx),
         .weight = floats_of(context->saved_data["weight_gradient"].toTensor()),
         .bias = rms ? std::span<float>{} : floats_of(context->saved_data["bias_gradient"].toTensor())});
    return {dx, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const Parameter& weight, const Parameter& bias, float epsilon) {
  if (!has_kernels(x)) return at::layer_norm(x, {x.size(-1)}, tracked(weight), tracked(bias), epsilon);
  return NormFunction::apply(x, weight.value, weight.gradient, value_of(&bias), gradient_of(&bias),
                             double{epsilon});
}

at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, float epsilon) {
  if (!has_kernels(x)) {
    const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor values = x.to(wide);
    const at::Tensor scales = values.square().mean(-1, true).add(epsilon).rsqrt();
    return values.mul(scales).to(x.scalar_type()).mul(tracked(weight));
  }
  return NormFunction::apply(x, weight.value, weight.gradient, value_of(nullptr), gradient_of(nullptr),
                             double{epsilon});
}

}  // namespace lockstep::nn
