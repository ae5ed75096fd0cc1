// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/schedule/check/step.h"
#include "lockstep/train/shares.h"

namespace lockstep::train {
namespace {

using schedule::Act;
using schedule::Action;

schedule::StepSpec spec_of(const model::Model& model, const StepPlan& plan, Rank rank,
                           const Partition& partition) {
  schedule::StepSpec spec = {.blocks = static_cast<int>(model.blocks.size()),
                             .first_lane = plan.lanes.first_lane[static_cast<std::size_t>(rank)],
                             .end_lane = plan.lanes.first_lane[static_cast<std::size_t>(rank) + 1],
                             .micro_batches = plan.micro_batches,
                             .recompute_every = plan.recompute_every,
                             .shards_update = partition.shards_update,
                             .bucket_blocks = {}};
  for (const Bucket& bucket : partition.buckets) spec.bucket_blocks.push_back(bucket.block);
  return spec;
}

// As many ranks are proved together with this one; of larger worlds these and this one alone.
constexpr int kProvedTogether = 64;

schedule::StepProgram proved_program(const model::Model& model, const StepPlan& plan, Rank rank,
                                     const Partition& partition) {
  std::vector<schedule::StepSpec> specs = {spec_of(model, plan, rank, partition)};
  std::vector<schedule::StepProgram> programs = {schedule::make_step(specs.front())};
  for (Rank other = 0; other < std::min(plan.lanes.world(), kProvedTogether); ++other) {
    if (other == rank) continue;
    specs.push_back(spec_of(model, plan, other, partition));
    programs.push_back(schedule::make_step(specs.back()));
  }
  const auto wrong = schedule::check_steps(specs, programs);
  LOCKSTEP_CHECK(!wrong, fmt::format("the step program of {} is wrong at action {}: {}",
                                     wrong->program == 0 ? "this rank" : "another rank",
                                     wrong->violation.action, wrong->violation.reason));
  return std::move(programs.front());
}

// As the gradients are added: neighbours first.
double tree_sum(std::vector<double> values) {
  for (; values.size() > 1; values.resize(values.size() / 2)) {
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  }
  return values.front();
}

bool computes(Act act) {
  return act == Act::forward || act == Act::loss || act == Act::recompute || act == Act::backward;
}

}  // namespace

StepRunner::StepRunner(const model::Model& model, const model::FlatLayout& layout, const Partition& partition,
                       const comm::Communicator& communicator, Weights& weights, StepPlan plan)
    : model_(model),
      layout_(layout),
      partition_(partition),
      communicator_(communicator),
      weights_(weights),
      plan_(std::move(plan)),
      slots_(communicator, layout, partition, weights.working()),
      passes_(model.blocks.size()),
      inputs_(model.blocks.size()),
      works_(partition.buckets.size()) {
  assign(plan_.lanes);
}

void StepRunner::assign(const LaneOwnership& lanes) {
  LOCKSTEP_CHECK(lanes.world() == communicator_.size(), "lanes are owned by the ranks of the group");
  plan_.lanes = lanes;
  program_ = proved_program(model_, plan_, communicator_.rank(), partition_);
  slots_.grow(program_.slots);
  sum_.emplace(communicator_, lanes, partition_.shards_update, plan_.sum);
}

StepResult StepRunner::run(const StepInputs& inputs) {
  result_ = {};
  lane_losses_.assign(static_cast<std::size_t>(plan_.lanes.lanes()), 0.0);
  for (const Action& action : program_.actions) {
    const auto began = Clock::now();
    play(action, inputs);
    const auto ended = Clock::now();
    if (computes(action.act)) result_.compute_seconds += std::chrono::duration<double>(ended - began).count();
    if (inputs.observe) inputs.observe(action, began, ended);
  }
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
      return slots_.merge(action.slot, action.from_slot,
                          partition_.buckets[static_cast<std::size_t>(action.bucket)].elements);
    case Act::reduce:
      return reduce(action.bucket);
    case Act::share_losses:
      return share_losses();
    case Act::finish:
    case Act::arrive:
      return works_[static_cast<std::size_t>(action.bucket)].wait();
    case Act::clip:
      return clip(inputs);
    case Act::update:
      return update(action.bucket, inputs);
    case Act::gather:
      return gather(action.bucket);
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
  const Range elements = partition_.buckets[static_cast<std::size_t>(bucket)].elements;
  std::vector<Bytes> partials;
  for (int slot : program_.piece_slots) {
    partials.push_back(slots_.bytes(slot, elements));
    if (sum_->takes_one_value() && slot != result_slot()) slots_.merge(result_slot(), slot, elements);
  }
  // The sums of earlier buckets have gone through the peers' gradients; a step later is soon enough.
  communicator_.forget_peer_memory();
  works_[static_cast<std::size_t>(bucket)] = sum_->start(partials, slots_.bytes(result_slot(), elements));
}

// Every lane's loss is known to its owner, and zero elsewhere: the sum is exact.
void StepRunner::share_losses() {
  communicator_.all_reduce(std::as_writable_bytes(std::span(lane_losses_)), {.dtype = DType::fp64});
  result_.loss_sum = tree_sum(lane_losses_);
}

void StepRunner::clip(const StepInputs& inputs) {
  std::vector<double> squares(blocks_of_squares(), 0.0);
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    const Range own = partition_.own[bucket];
    kernels::sums_of_squares(
        own_gradients(bucket),
        std::span(squares).subspan(own.begin / kernels::kSquaresBlock, own.size() / kernels::kSquaresBlock));
  }
  // As for the losses: each block of squares is known to one rank.
  if (partition_.shards_update) {
    communicator_.all_reduce(std::as_writable_bytes(std::span(squares)), {.dtype = DType::fp64});
  }
  const double norm = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  result_.gradient_norm = norm * inputs.gradient_scale;
  result_.updated = std::isfinite(norm);
  if (!result_.updated) result_.not_finite = first_not_finite();
  const bool too_long = inputs.max_norm > 0 && result_.gradient_norm > inputs.max_norm;
  gradient_factor_ = inputs.gradient_scale * (too_long ? inputs.max_norm / result_.gradient_norm : 1.0);
}

// A value that is not finite spreads to all blocks that come later on the way back.
std::optional<std::size_t> StepRunner::first_not_finite() const {
  const std::vector<std::size_t> order = backward_order(layout_);
  auto first = static_cast<std::int64_t>(order.size());
  for (std::int64_t place = 0; place < first; ++place) {
    const Range parameter = elements_of(layout_.places()[order[static_cast<std::size_t>(place)]]);
    for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
      const Range own = intersection(partition_.own[bucket], parameter);
      if (!own.empty() && kernels::first_not_finite(slots_.floats(result_slot(), own))) first = place;
    }
  }
  communicator_.all_reduce(as_writable_bytes_of(first), {.dtype = DType::int64, .op = comm::ReduceOp::min});
  if (static_cast<std::size_t>(first) == order.size()) return std::nullopt;
  return order[static_cast<std::size_t>(first)];
}

at::Tensor StepRunner::gather_gradients() const {
  return gather_shares(partition_, communicator_, [&](std::size_t bucket) { return own_gradients(bucket); })
      .narrow(0, 0, layout_.elements());
}

void StepRunner::update(int bucket, const StepInputs& inputs) {
  if (!result_.updated) return;
  const auto index = static_cast<std::size_t>(bucket);
  weights_.update(inputs.optimizer, index, own_gradients(index), static_cast<float>(gradient_factor_));
}

void StepRunner::gather(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  communicator_.forget_peer_memory();
  works_[index] = result_.updated
                      ? communicator_.all_gather_async(weights_.working(index), {.dtype = weights_.dtype()})
                      : comm::Work();
}

}  // namespace lockstep::train
