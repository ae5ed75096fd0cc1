// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/schedule/check/step.h"

namespace lockstep::train {
namespace {

using schedule::Act;
using schedule::Action;

schedule::StepSpec spec_of(const model::Model& model, const StepPlan& plan, Rank rank,
                           const std::vector<Bucket>& buckets) {
  schedule::StepSpec spec = {.blocks = static_cast<int>(model.blocks.size()),
                             .first_lane = plan.lanes.first_lane[static_cast<std::size_t>(rank)],
                             .end_lane = plan.lanes.first_lane[static_cast<std::size_t>(rank) + 1],
                             .micro_batches = plan.micro_batches,
                             .recompute_every = plan.recompute_every,
                             .bucket_blocks = {}};
  for (const Bucket& bucket : buckets) spec.bucket_blocks.push_back(bucket.block);
  return spec;
}

schedule::StepProgram proved_program(const schedule::StepSpec& spec) {
  schedule::StepProgram program = schedule::make_step(spec);
  const schedule::StepCheck check = schedule::check_step(spec, program);
  LOCKSTEP_CHECK(!check.violation, fmt::format("the step program is wrong at action {}: {}",
                                               check.violation->action, check.violation->reason));
  return program;
}

comm::LanePieces pieces_of(const LaneOwnership& lanes) {
  comm::LanePieces pieces;
  for (Rank rank = 0; rank < lanes.world(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    pieces.push_back(complete_subtrees(lanes.first_lane[r], lanes.first_lane[r + 1]));
  }
  return pieces;
}

// As the gradients are added: neighbours first.
double tree_sum(std::vector<double> values) {
  for (; values.size() > 1; values.resize(values.size() / 2)) {
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  }
  return values.front();
}

}  // namespace

StepRunner::StepRunner(const model::Model& model, const model::FlatLayout& layout,
                       const comm::Communicator& communicator, Weights& weights, StepPlan plan)
    : model_(model),
      communicator_(communicator),
      weights_(weights),
      plan_(std::move(plan)),
      buckets_(cut_into_buckets(layout, plan_.bucket_elements)),
      pieces_(pieces_of(plan_.lanes)),
      program_(proved_program(spec_of(model, plan_, communicator.rank(), buckets_))),
      slots_(communicator, layout, weights.working(), program_.slots),
      passes_(model.blocks.size()),
      inputs_(model.blocks.size()),
      works_(buckets_.size()) {
  LOCKSTEP_CHECK(plan_.lanes.world() == communicator.size(), "lanes are owned by the ranks of the group");
}

StepResult StepRunner::run(const StepInputs& inputs) {
  result_ = {};
  lane_losses_.assign(static_cast<std::size_t>(plan_.lanes.lanes()), 0.0);
  for (const Action& action : program_.actions) play(action, inputs);
  return result_;
}

void StepRunner::play(const Action& action, const StepInputs& inputs) {
  switch (action.act) {
    case Act::clear:
      return slots_.clear(action.slot);
    case Act::forward:
      return forward(action, inputs);
    case Act::loss:
      return lose(action, inputs);
    case Act::recompute:
      return recompute(action);
    case Act::backward:
      return backward(action);
    case Act::merge:
      return slots_.merge(action.slot, action.from_slot, buckets_[static_cast<std::size_t>(action.bucket)]);
    case Act::reduce:
      return reduce(action.bucket);
    case Act::share_losses:
      return share_losses();
    case Act::finish:
      return works_[static_cast<std::size_t>(action.bucket)].wait();
    case Act::clip:
      return clip(inputs);
    case Act::update:
      return update(inputs);
  }
}

void StepRunner::forward(const Action& action, const StepInputs& inputs) {
  const auto index = static_cast<std::size_t>(action.block);
  if (action.block == 0) {
    batch_ = inputs.batch(action.lane, action.micro_batch);
    hidden_ = at::Tensor();
  }
  const model::Block& block = *model_.blocks[index];
  const model::BlockParameters parameters = slots_.parameters(action.slot).of_block(index);
  if (action.keeps) {
    passes_[index] = model::forward(block, hidden_, batch_, parameters);
    hidden_ = passes_[index].output.detach();
  } else {
    inputs_[index] = hidden_;
    hidden_ = model::forward_only(block, hidden_, batch_, parameters);
  }
}

void StepRunner::lose(const Action& action, const StepInputs& inputs) {
  const nn::HeadLoss loss = nn::head_loss_with_gradients(hidden_, slots_.parameters(action.slot).head(),
                                                         batch_.targets, inputs.loss_scale);
  lane_losses_[static_cast<std::size_t>(action.lane)] += kernels::sum_of(nn::floats_of(loss.losses));
  gradient_ = loss.x_gradient;
  hidden_ = at::Tensor();
}

void StepRunner::recompute(const Action& action) {
  const auto index = static_cast<std::size_t>(action.block);
  passes_[index] = model::forward(*model_.blocks[index], std::exchange(inputs_[index], at::Tensor()), batch_,
                                  slots_.parameters(action.slot).of_block(index));
}

void StepRunner::backward(const Action& action) {
  gradient_ = model::backward(std::move(passes_[static_cast<std::size_t>(action.block)]), gradient_);
}

void StepRunner::reduce(int bucket) {
  std::vector<Bytes> partials;
  for (int slot : program_.piece_slots) {
    partials.push_back(slots_.bytes(slot, buckets_[static_cast<std::size_t>(bucket)]));
  }
  if (partials.empty()) partials.push_back(slots_.bytes(0, buckets_[static_cast<std::size_t>(bucket)]));
  works_[static_cast<std::size_t>(bucket)] = communicator_.all_reduce_lanes_async(partials, pieces_);
}

// Every lane's loss is known to its owner, and zero elsewhere: the sum is exact.
void StepRunner::share_losses() {
  communicator_.all_reduce(std::as_writable_bytes(std::span(lane_losses_)), {.dtype = DType::fp64});
  result_.loss_sum = tree_sum(lane_losses_);
}

void StepRunner::clip(const StepInputs& inputs) {
  const double norm = std::sqrt(kernels::sum_of_squares(slots_.floats(result_slot())));
  result_.gradient_norm = norm * inputs.gradient_scale;
  const bool too_long = inputs.max_norm > 0 && result_.gradient_norm > inputs.max_norm;
  gradient_factor_ = inputs.gradient_scale * (too_long ? inputs.max_norm / result_.gradient_norm : 1.0);
}

void StepRunner::update(const StepInputs& inputs) {
  result_.updated = std::isfinite(result_.gradient_norm);
  if (!result_.updated) return;
  weights_.update(inputs.optimizer, slots_.floats(result_slot()), static_cast<float>(gradient_factor_));
}

}  // namespace lockstep::train
