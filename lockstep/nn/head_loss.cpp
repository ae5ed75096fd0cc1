// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/head_loss.h"

#include <span>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/loss/lane_head.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

// A negative int32 is a number beyond every vocabulary; -1 is the one that kernels ignore.
std::span<const std::uint32_t> targets_of(const at::Tensor& targets) {
  return {reinterpret_cast<const std::uint32_t*>(targets.data_ptr<std::int32_t>()),
          static_cast<std::size_t>(targets.numel())};
}

at::Tensor one_row_of_losses(const at::Tensor& targets, const at::Tensor& like) {
  return at::empty({targets.numel()}, like.options().dtype(at::kFloat));
}

// For every other device: all logits at once, in fp32 or wider.
HeadLoss by_aten(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_gradient,
                 const at::Tensor& targets, float scale) {
  const at::ScalarType wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  const at::Tensor logits = rows.matmul(weight.t()).to(wide);
  const at::Tensor wanted = targets.reshape({-1}).to(at::kLong);
  const at::Tensor counts = wanted.ge(0);
  const at::Tensor index = wanted.clamp_min(0).unsqueeze(1);
  const at::Tensor log_probabilities = logits.log_softmax(1);
  HeadLoss result;
  result.losses = log_probabilities.gather(1, index).squeeze(1).neg().mul(counts);
  if (!weight_gradient.defined()) return result;
  at::Tensor slopes = log_probabilities.exp();
  slopes.scatter_add_(1, index, slopes.new_full(index.sizes(), -1.0));
  slopes = slopes.mul(counts.unsqueeze(1)).mul(scale);
  weight_gradient.add_(slopes.t().matmul(rows.to(wide)));
  result.x_gradient = slopes.to(x.scalar_type()).matmul(weight).reshape(x.sizes());
  return result;
}

// What the kernel is given, and what keeps it alive.
struct LanesOfHead {
  LanesOfHead(const at::Tensor& rows, const DividedHead& head, const at::Tensor& targets, const Lanes& lanes,
              bool with_gradients) {
    for (std::size_t i = 0; i < head.parts.size(); ++i) {
      const LaneRun run = lanes.run_of(head.vocabulary, static_cast<int>(i));
      const auto rows_of_lane = [&](const at::Tensor& part) {
        return matrix_of(part.detach().narrow(0, 0, run.count));
      };
      here.push_back(
          {.weight = rows_of_lane(head.parts[i]->value),
           .first = static_cast<std::uint32_t>(run.first),
           .weight_gradient = with_gradients ? rows_of_lane(head.parts[i]->gradient) : kernels::Matrix{}});
    }
    const LaneShare share = lanes.team->share();
    all = {.x = matrix_of(rows),
           .targets = targets_of(targets),
           .vocabulary = static_cast<std::uint32_t>(head.vocabulary),
           .lanes = static_cast<std::size_t>(share.lanes),
           .first_lane = static_cast<std::size_t>(share.first),
           .here = here,
           .exchange = [&lanes, share](std::span<float> statistics) {
             const auto each = static_cast<std::int64_t>(statistics.size()) / share.lanes;
             lanes.team->all_gather(at::from_blob(statistics.data(), {share.lanes, each}, at::kFloat));
           }};
  }
  LanesOfHead(const LanesOfHead&) = delete;

  std::vector<kernels::HeadLane> here;
  kernels::DividedHead all;
};

}  // namespace

HeadLoss head_loss_with_gradients(const at::Tensor& x, const Parameter& weight, const at::Tensor& targets,
                                  float scale) {
  const at::Tensor value = weight.value.detach();
  if (!has_kernels(x)) return by_aten(x, value, weight.gradient, targets, scale);
  const at::Tensor rows = as_rows(x);
  HeadLoss result = {one_row_of_losses(targets, x), at::empty(x.sizes(), x.options())};
  kernels::head_loss(
      {matrix_of(rows), matrix_of(value), targets_of(targets)}, floats_of(result.losses),
      {.scale = scale, .x = matrix_of(result.x_gradient), .weight = matrix_of(weight.gradient)});
  return result;
}

at::Tensor head_loss(const at::Tensor& x, const Parameter& weight, const at::Tensor& targets) {
  const at::Tensor value = weight.value.detach();
  if (!has_kernels(x)) return by_aten(x, value, {}, targets, 1.0F).losses;
  const at::Tensor rows = as_rows(x);
  at::Tensor losses = one_row_of_losses(targets, x);
  kernels::head_loss({matrix_of(rows), matrix_of(value), targets_of(targets)}, floats_of(losses));
  return losses;
}

HeadLoss head_loss_with_gradients(const at::Tensor& x, const DividedHead& head, const at::Tensor& targets,
                                  float scale, const Lanes& lanes) {
  if (!lanes.several()) return head_loss_with_gradients(x, *head.parts[0], targets, scale);
  require_kernels_for_lanes(x, lanes);
  const at::Tensor rows = gather_tokens(x, lanes);
  const at::Tensor room = room_for_sums(lanes, x.size(-1), x.options());
  HeadLoss result = {one_row_of_losses(targets, x), {}};
  kernels::lane_head_loss(LanesOfHead(rows, head, targets, lanes, true).all, floats_of(result.losses), scale,
                          matrix_of(room.narrow(0, 0, lanes.tokens)));
  result.x_gradient = sum_over_members(room, lanes).view(x.sizes());
  return result;
}

at::Tensor head_loss(const at::Tensor& x, const DividedHead& head, const at::Tensor& targets,
                     const Lanes& lanes) {
  if (!lanes.several()) return head_loss(x, *head.parts[0], targets);
  require_kernels_for_lanes(x, lanes);
  const at::Tensor rows = gather_tokens(x, lanes);
  at::Tensor losses = one_row_of_losses(targets, x);
  kernels::lane_head_loss(LanesOfHead(rows, head, targets, lanes, false).all, floats_of(losses));
  return losses;
}

}  // namespace lockstep::nn
