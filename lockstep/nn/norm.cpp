// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros.h>

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

// The way back through some of the rows at a time.
struct Backward {
  kernels::Norm norm;
  kernels::ConstMatrix in;
  kernels::ConstMatrix out_gradient;
  at::Tensor statistics;
  kernels::Matrix in_gradient;

  void go_back(LaneRun rows, const at::Tensor& weight_gradient, const at::Tensor& bias_gradient) const {
    const auto first = static_cast<std::size_t>(rows.first), count = static_cast<std::size_t>(rows.count);
    const auto some = [&](const auto& matrix) { return matrix.part(first, count, 0, matrix.columns); };
    kernels::norm_backward(
        norm, some(in), some(out_gradient),
        {floats_of(statistics[0]).subspan(first, count), floats_of(statistics[1]).subspan(first, count)},
        {.in = some(in_gradient),
         .weight = floats_of(weight_gradient),
         .bias = bias_gradient.defined() ? floats_of(bias_gradient) : std::span<float>{}});
  }
};

// The runs of the lanes here, each with its gradients; and what is before and behind them, whose gradients of
// parameters are computed by others.
void go_back_by_runs(const Backward& pass, const at::Tensor& weight_gradient, const at::Tensor& bias_gradient,
                     const Lanes& lanes) {
  const auto gradient_of_run = [](const at::Tensor& gradient, std::int64_t index) {
    return gradient.defined() ? gradient.select(0, index) : gradient;
  };
  std::int64_t end = 0;
  for (int i = 0; i < lanes.here(); ++i) {
    const LaneRun run = lanes.run_here(i);
    if (i == 0) end = run.first;
    pass.go_back(run, gradient_of_run(weight_gradient, i), gradient_of_run(bias_gradient, i));
    end += run.count;
  }
  const at::Tensor theirs = at::zeros({2, weight_gradient.size(-1)}, weight_gradient.options());
  const at::Tensor their_bias = bias_gradient.defined() ? theirs[1] : bias_gradient;
  pass.go_back({0, lanes.run_here(0).first}, theirs[0], their_bias);
  pass.go_back({end, static_cast<std::int64_t>(pass.in.rows) - end}, theirs[0], their_bias);
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& weight_gradient, const OptionalTensor& bias,
                            const OptionalTensor& bias_gradient, double epsilon, const Lanes& lanes) {
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
    context->saved_data["lanes"] = keep(lanes);
    context->saved_data["weight_gradient"] = weight_gradient;
    if (!rms) context->saved_data["bias_gradient"] = *bias_gradient;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool rms = !saved[2].defined();
    const at::Tensor dout = as_rows(gradients[0]);
    at::Tensor dx = at::empty(saved[0].sizes(), saved[0].options());
    const Backward pass = {norm_of(rms, context->saved_data["epsilon"].toDouble(), saved[1], saved[2]),
                           matrix_of(saved[0]), matrix_of(dout), saved[3], matrix_of(dx)};
    const at::Tensor weight_gradient = context->saved_data["weight_gradient"].toTensor();
    const at::Tensor bias_gradient = rms ? at::Tensor() : context->saved_data["bias_gradient"].toTensor();
    const auto& lanes = kept<Lanes>(context->saved_data["lanes"]);
    if (lanes.several()) {
      go_back_by_runs(pass, weight_gradient, bias_gradient, lanes);
    } else {
      pass.go_back({0, dx.numel() / dx.size(-1)}, weight_gradient, bias_gradient);
    }
    return {dx, {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const Parameter& weight, const Parameter& bias, float epsilon,
                      const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) return at::layer_norm(x, {x.size(-1)}, tracked(weight), tracked(bias), epsilon);
  return NormFunction::apply(x, weight.value, weight.gradient, value_of(&bias), gradient_of(&bias),
                             double{epsilon}, lanes);
}

at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, float epsilon, const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) {
    const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor values = x.to(wide);
    const at::Tensor scales = values.square().mean(-1, true).add(epsilon).rsqrt();
    return values.mul(scales).to(x.scalar_type()).mul(tracked(weight));
  }
  return NormFunction::apply(x, weight.value, weight.gradient, value_of(nullptr), gradient_of(nullptr),
                             double{epsilon}, lanes);
}

}  // namespace lockstep::nn
