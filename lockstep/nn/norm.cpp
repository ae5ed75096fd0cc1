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

using Tensors = std::vector<at::Tensor>;

// The runs of the lanes here, each with its gradients; and what is before and behind them, whose gradients of
// parameters are computed by others.
void go_back_by_runs(const Backward& pass, const Tensors& weight_gradients, const Tensors& bias_gradients,
                     const Lanes& lanes) {
  std::int64_t end = lanes.run_here(0).first;
  for (int i = 0; i < lanes.here(); ++i) {
    const auto lane = static_cast<std::size_t>(i);
    const LaneRun run = lanes.run_here(i);
    pass.go_back(run, weight_gradients[lane], bias_gradients.empty() ? at::Tensor() : bias_gradients[lane]);
    end = run.first + run.count;
  }
  const at::Tensor theirs = at::zeros({2, weight_gradients[0].numel()}, at::kFloat);
  const at::Tensor their_bias = bias_gradients.empty() ? at::Tensor() : theirs[1];
  pass.go_back({0, lanes.run_here(0).first}, theirs[0], their_bias);
  pass.go_back({end, static_cast<std::int64_t>(pass.in.rows) - end}, theirs[0], their_bias);
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const Tensors& weight_gradients, const OptionalTensor& bias,
                            const Tensors& bias_gradients, double epsilon, const Lanes& lanes) {
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
    context->saved_data["weight_gradients"] = weight_gradients;
    context->saved_data["bias_gradients"] = bias_gradients;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const bool rms = !saved[2].defined();
    const at::Tensor dout = as_rows(gradients[0]);
    at::Tensor dx = at::empty(saved[0].sizes(), saved[0].options());
    const Backward pass = {norm_of(rms, context->saved_data["epsilon"].toDouble(), saved[1], saved[2]),
                           matrix_of(saved[0]), matrix_of(dout), saved[3], matrix_of(dx)};
    const Tensors weight_gradients = context->saved_data["weight_gradients"].toTensorVector();
    const Tensors bias_gradients = context->saved_data["bias_gradients"].toTensorVector();
    const auto& lanes = kept<Lanes>(context->saved_data["lanes"]);
    if (lanes.several()) {
      go_back_by_runs(pass, weight_gradients, bias_gradients, lanes);
    } else {
      pass.go_back({0, dx.numel() / dx.size(-1)}, weight_gradients[0],
                   rms ? at::Tensor() : bias_gradients[0]);
    }
    return {dx, {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const Parameter& weight, const Parameter& bias, float epsilon,
                      const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) return at::layer_norm(x, {x.size(-1)}, tracked(weight), tracked(bias), epsilon);
  return NormFunction::apply(x, weight.value, gradients_by_lane(weight, lanes), value_of(&bias),
                             gradients_by_lane(bias, lanes), double{epsilon}, lanes);
}

at::Tensor rms_norm(const at::Tensor& x, const Parameter& weight, float epsilon, const Lanes& lanes) {
  require_kernels_for_lanes(x, lanes);
  if (!has_kernels(x)) {
    const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor values = x.to(wide);
    const at::Tensor scales = values.square().mean(-1, true).add(epsilon).rsqrt();
    return values.mul(scales).to(x.scalar_type()).mul(tracked(weight));
  }
  return NormFunction::apply(x, weight.value, gradients_by_lane(weight, lanes), value_of(nullptr), Tensors(),
                             double{epsilon}, lanes);
}

}  // namespace lockstep::nn
