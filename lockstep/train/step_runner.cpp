// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_runner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/shares.h"

namespace lockstep::train {
namespace {

using schedule::Act;
using schedule::Action;

// Streams of the pipeline's group that StageMail leaves free.
constexpr std::uint32_t kHeadStream = 2;

// The one that is the last to add to the parameter's gradient.
std::size_t lowest_block_with(const model::FlatLayout& layout, std::size_t parameter) {
  std::size_t block = 0;
  while (std::ranges::count(layout.of_block(block), parameter) == 0) ++block;
  return block;
}

// As the gradients are added: neighbours first.
double tree_sum(std::vector<double> values) {
  for (; values.size() > 1; values.resize(values.size() / 2)) {
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  }
  return values.front();
}

double seconds_between(Clock::time_point began, Clock::time_point ended) {
  return std::chrono::duration<double>(ended - began).count();
}

}  // namespace

StepRunner::StepRunner(const model::Model& model, const Holding& holding, BufferPool& pool, Weights& weights,
                       StepPlan plan)
    : model_(model),
      holding_(holding),
      partition_(holding.partition),
      weights_(weights),
      plan_(std::move(plan)),
      slots_(holding, pool, weights),
      passes_(model, holding, slots_, plan_.hidden, nn::scalar_type_of(weights.dtype())),
      works_(partition_.buckets.size()) {
  assign(plan_.lanes);
}

StepRunner::~StepRunner() {
  for (comm::Work& work : works_) work.cancel();
  for (auto& [slot, works] : head_gradients_) {
    for (comm::Work& work : works) work.cancel();
  }
}

void StepRunner::assign(const LaneOwnership& lanes) {
  const comm::Communicator& data = holding_.groups.data;
  LOCKSTEP_CHECK(lanes.world() == data.size(), "lanes are owned by the data-parallel ranks");
  plan_.lanes = lanes;
  program_ = proved_program(model_, holding_, plan_);
  slots_.grow(program_.program.slots);
  sum_.emplace(holding_, lanes, plan_.sum);
}

PassesOfStep StepRunner::passes() const {
  return {.stage = program_.stage,
          .first_lane = plan_.lanes.first_lane[static_cast<std::size_t>(holding_.groups.data.rank())],
          .micro_batches = plan_.micro_batches};
}

std::vector<Range> StepRunner::head_elements() const {
  std::vector<Range> elements;
  for (const std::size_t head : holding_.layout.heads()) {
    elements.push_back(elements_of(holding_.layout.places()[head]));
  }
  return elements;
}

// --- The step.

StepResult StepRunner::run(const StepInputs& inputs) {
  result_ = {};
  optimizer_ = inputs.optimizer;
  is_updated_.assign(partition_.buckets.size(), false);
  lane_losses_.assign(static_cast<std::size_t>(plan_.lanes.lanes()), 0.0);
  const Rank rank = holding_.groups.data.rank();
  result_.times.lanes = plan_.lanes.count_of(rank);
  // Inside of a pass forward, whose time it is not.
  const auto timed_batch = [&](int lane, int micro_batch) {
    const auto began = Clock::now();
    model::Batch batch = inputs.batch(lane, micro_batch);
    if (inputs.activity != nullptr) inputs.activity->get_on();
    const double seconds = seconds_between(began, Clock::now());
    result_.times[Phase::data] += seconds;
    result_.times[Phase::forward] -= seconds;
    return batch;
  };
  passes_.begin({.program = program_,
                 .first_lane = plan_.lanes.first_lane[static_cast<std::size_t>(rank)],
                 .lanes = plan_.lanes.count_of(rank),
                 .micro_batches = plan_.micro_batches,
                 .batch = timed_batch,
                 .loss_scale = inputs.loss_scale,
                 .lane_losses = lane_losses_});
  for (const Action& action : program_.program.actions) {
    const Phase phase = phase_of(action.act);
    // What is on a disk may take as long as the others wait.
    const bool is_excused = phase == Phase::update && weights_.is_on_disk();
    const elastic::Activity::Wait excused(is_excused ? inputs.activity : nullptr);
    const auto began = Clock::now();
    play(action, inputs);
    const auto ended = Clock::now();
    if (inputs.activity != nullptr) inputs.activity->get_on();
    result_.times[phase] += seconds_between(began, ended);
    if (inputs.observe) inputs.observe(action, began, ended);
  }
  passes_.finish();
  return result_;
}

void StepRunner::play(const Action& action, const StepInputs& inputs) {
  switch (action.act) {
    case Act::clear:
      return clear(action);
    case Act::receive_activation:
    case Act::receive_gradient:
      return passes_.receive(action);
    case Act::forward:
      return passes_.forward(action);
    case Act::send_activation:
    case Act::send_gradient:
      return passes_.send(action);
    case Act::loss:
      return passes_.lose(action);
    case Act::recompute:
      return passes_.recompute(action);
    case Act::backward:
    case Act::backward_input:
      return passes_.backward(action);
    case Act::backward_weight:
      return passes_.backward_weight(action);
    case Act::send_head_gradient:
      return send_head_gradient(action);
    case Act::receive_head_gradient:
      return await_head_gradient(action);
    case Act::settle:
      return passes_.settle(action);
    case Act::sum_shared:
      return sum_shared(action);
    case Act::merge:
      return slots_.merge(action.slot, action.from_slot, static_cast<std::size_t>(action.bucket));
    case Act::reduce:
      return reduce(action.bucket);
    case Act::add_hosts:
      return add_hosts(action.bucket);
    case Act::share_losses:
      return share_losses();
    case Act::finish:
      return finish(action.bucket);
    case Act::arrive:
      return works_[static_cast<std::size_t>(action.bucket)].wait();
    case Act::clip:
      return clip(inputs);
    case Act::agree:
      return agree(inputs);
    case Act::update:
      return update(action.bucket);
    case Act::gather:
      return gather(action.bucket);
    case Act::fetch:
      return weights_.fetch(static_cast<std::size_t>(action.bucket));
    case Act::use:
      return weights_.use(static_cast<std::size_t>(action.bucket));
    case Act::drop:
      return weights_.drop(static_cast<std::size_t>(action.bucket));
    case Act::send_head:
      return send_head();
    case Act::receive_head:
      return receive_head();
  }
}

void StepRunner::clear(const Action& action) {
  slots_.clear(action.slot, static_cast<std::size_t>(action.chunk));
  if (!model::is_tied(model_)) return;
  const bool is_first = schedule::chunk_of_part(program_.stage, 0) == action.chunk;
  const bool is_last = schedule::chunk_of_part(program_.stage, last_part()) == action.chunk;
  if (is_last && holding_.layout.borrows_head()) {
    await_head_gradient(action);
    for (const Range& head : head_elements()) slots_.clear_borrowed(action.slot, head);
  } else if (is_first && holder_of_part(last_part()) != program_.stage.rank) {
    for (const Range& head : head_elements()) {
      head_gradients_[action.slot].push_back(holding_.groups.pipeline.recv_async(
          holder_of_part(last_part()), slots_.bytes(action.slot, head), {.stream = kHeadStream}));
    }
  }
}

// --- Between lanes.

void StepRunner::sum_shared(const Action& action) {
  const model::FlatLayout& layout = holding_.layout;
  const auto block = static_cast<std::size_t>(action.block);
  const std::vector<std::size_t>& indices = layout.of_block(block);
  const std::size_t of_lane = indices.size() / layout.lanes();
  const std::vector<nn::Parameter>& parameters = slots_.parameters(action.slot).all();
  std::map<int, std::vector<std::vector<at::Tensor>>> by_sharing;
  for (std::size_t i = 0; i < of_lane; ++i) {
    const int sharing = holding_.tensor->model().sharing(layout.specs()[indices[i]].name);
    if (sharing == 1 || lowest_block_with(layout, indices[i]) != block) continue;
    std::vector<at::Tensor>& lanes = by_sharing[sharing].emplace_back();
    for (std::size_t lane = 0; lane < layout.lanes(); ++lane) {
      lanes.push_back(parameters[indices[lane * of_lane + i]].gradient);
    }
  }
  for (const auto& [sharing, gradients] : by_sharing) holding_.tensor->shared().sum(gradients, sharing);
}

// --- Between stages.

void StepRunner::send_head_gradient(const Action& action) {
  for (const Range& head : head_elements()) {
    head_gradients_[action.slot].push_back(holding_.groups.pipeline.send_async(
        holder_of_part(0), slots_.bytes(action.slot, head), {.stream = kHeadStream}));
  }
}

void StepRunner::await_head_gradient(const Action& action) {
  for (comm::Work& work : std::exchange(head_gradients_[action.slot], {})) work.wait();
}

void StepRunner::send_head() {
  if (!result_.updated) return;
  const std::vector<Range> heads = head_elements();
  const auto send = [&] {
    for (const Range& head : heads) {
      holding_.groups.pipeline.send(holder_of_part(last_part()), weights_.working(head),
                                    {.dtype = weights_.dtype(), .stream = kHeadStream});
    }
  };
  if (!holding_.shards_weights) return send();
  const auto holder = std::ranges::find_if(
      partition_.buckets, [&](const Bucket& bucket) { return bucket.elements.contains(heads.front()); });
  const auto bucket = static_cast<std::size_t>(holder - partition_.buckets.begin());
  weights_.fetch(bucket);
  weights_.use(bucket);
  send();
  weights_.drop(bucket);
}

void StepRunner::receive_head() {
  if (!result_.updated) return;
  for (const Range& head : head_elements()) {
    holding_.groups.pipeline.recv(holder_of_part(0), weights_.working(head),
                                  {.dtype = weights_.dtype(), .stream = kHeadStream});
  }
}

// --- Gradients and weights.

std::span<const float> StepRunner::own_gradients(std::size_t bucket) const {
  return slots_.share(result_slot(bucket), bucket);
}

const std::vector<int>& StepRunner::piece_slots(std::size_t bucket) const {
  return program_.program.piece_slots[chunk_of_block(program_.stage, partition_.buckets[bucket].block)];
}

int StepRunner::result_slot(std::size_t bucket) const {
  return piece_slots(bucket).empty() ? 0 : piece_slots(bucket).front();
}

void StepRunner::reduce(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  const Range elements = partition_.buckets[index].elements;
  const int result = result_slot(index);
  std::vector<Bytes> partials;
  for (int slot : piece_slots(index)) {
    partials.push_back(slots_.bytes(slot, elements));
    if (sum_->takes_one_value() && slot != result) slots_.merge(result, slot, index);
  }
  slots_.acquire(result, index);
  works_[index] = sum_->start(partials, slots_.bytes(result, elements));
  LOCKSTEP_FAILPOINT("train.reduce");
}

void StepRunner::add_hosts(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  keep_sum(index);
  works_[index] = sum_->add_hosts(std::as_writable_bytes(slots_.share(result_slot(index), index)));
}

void StepRunner::finish(int bucket) {
  LOCKSTEP_FAILPOINT("train.finish");
  const auto index = static_cast<std::size_t>(bucket);
  if (holding_.copies_on_hosts) return works_[index].wait();
  keep_sum(index);
}

void StepRunner::keep_sum(std::size_t bucket) {
  works_[bucket].wait();
  slots_.keep_share(result_slot(bucket), bucket);
}

// Every lane's loss is known to its owner, and zero elsewhere: the sum is exact. Those who compute it
// together all know it.
void StepRunner::share_losses() {
  if (holding_.groups.tensor.rank() != 0) std::ranges::fill(lane_losses_, 0.0);
  holding_.groups.world.all_reduce(std::as_writable_bytes(std::span(lane_losses_)), {.dtype = DType::fp64});
  result_.loss_sum = tree_sum(lane_losses_);
}

void StepRunner::clip(const StepInputs& inputs) {
  constexpr std::size_t kBlock = kernels::kSquaresBlock;
  std::vector<double> squares(holding_.layout.elements_of_whole() / kBlock, 0.0);
  // What hosts have copies of is counted once.
  const bool counts = !holding_.copies_on_hosts || holding_.groups.copies.rank() == 0;
  for (std::size_t bucket = 0; bucket < partition_.own.size() && counts; ++bucket) {
    for (const auto& [elements, in_whole, is_copy] : holding_.layout.segments()) {
      const Range own = intersection(partition_.own[bucket], elements);
      const std::size_t first = (in_whole + own.begin - elements.begin) / kBlock;
      if (own.empty() || is_copy) continue;
      kernels::sums_of_squares(
          own_gradients(bucket).subspan(own.begin - partition_.own[bucket].begin, own.size()),
          std::span(squares).subspan(first, own.size() / kBlock));
    }
  }
  // As for the losses: each block of squares is known to one rank.
  const Groups& groups = holding_.groups;
  const std::vector<comm::Communicator> knowing =
      partition_.shards_update ? std::vector{groups.world} : std::vector{groups.tensor, groups.pipeline};
  for (const comm::Communicator& group : knowing) {
    group.all_reduce(std::as_writable_bytes(std::span(squares)), {.dtype = DType::fp64});
  }
  const double norm = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  result_.gradient_norm = norm * inputs.gradient_scale;
  result_.updated = std::isfinite(norm);
  if (!result_.updated) result_.not_finite = first_not_finite();
  const bool too_long = inputs.max_norm > 0 && result_.gradient_norm > inputs.max_norm;
  LOCKSTEP_FAILPOINT("train.clipped");
  gradient_factor_ = inputs.gradient_scale * (too_long ? inputs.max_norm / result_.gradient_norm : 1.0);
}

// A value that is not finite spreads to all blocks that come later on the way back.
std::optional<std::size_t> StepRunner::first_not_finite() const {
  const model::FlatLayout& layout = holding_.layout;
  const std::vector<std::size_t> order = backward_order(holding_.whole);
  auto first = static_cast<std::int64_t>(order.size());
  for (std::size_t i = layout.borrows_head() ? layout.lanes() : 0; i < layout.specs().size(); ++i) {
    const auto place = std::ranges::find_if(order, [&](std::size_t parameter) {
      return holding_.whole.specs()[parameter].name == layout.specs()[i].name;
    });
    for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
      const Range own = intersection(partition_.own[bucket], elements_of(layout.places()[i]));
      const std::size_t begin = own.begin - partition_.own[bucket].begin;
      if (own.empty() || !kernels::first_not_finite(own_gradients(bucket).subspan(begin, own.size())))
        continue;
      first = std::min<std::int64_t>(first, place - order.begin());
    }
  }
  holding_.groups.world.all_reduce(as_writable_bytes_of(first),
                                   {.dtype = DType::int64, .op = comm::ReduceOp::min});
  if (static_cast<std::size_t>(first) == order.size()) return std::nullopt;
  return order[static_cast<std::size_t>(first)];
}

at::Tensor StepRunner::gather_gradients() const {
  return gather_whole(holding_, DType::fp32,
                      [&](std::size_t bucket) { return std::as_bytes(own_gradients(bucket)); });
}

void StepRunner::agree(const StepInputs& inputs) {
  if (inputs.agree) inputs.agree(result_);
}

std::vector<std::span<const float>> StepRunner::shares_of_gradients() const {
  std::vector<std::span<const float>> shares;
  for (std::size_t bucket = 0; bucket < partition_.buckets.size(); ++bucket) {
    shares.push_back(own_gradients(bucket));
  }
  return shares;
}

void StepRunner::update(int bucket) {
  if (!result_.updated) return;
  const auto index = static_cast<std::size_t>(bucket);
  read_ahead(bucket);
  weights_.update(optimizer_, index, own_gradients(index), gradient_factor());
  is_updated_[index] = true;
}

void StepRunner::apply_rest() {
  for (std::size_t bucket = 0; bucket < is_updated_.size(); ++bucket) {
    if (!is_updated_[bucket]) update(static_cast<int>(bucket));
  }
}

// What the optimizer remembers of this bucket and of the next one that is updated.
void StepRunner::read_ahead(int bucket) {
  const std::vector<Action>& actions = program_.program.actions;
  const auto is_update = [](const Action& action) { return action.act == Act::update; };
  const auto mine = std::ranges::find_if(
      actions, [&](const Action& action) { return is_update(action) && action.bucket == bucket; });
  const auto next = std::find_if(mine + 1, actions.end(), is_update);
  weights_.read_ahead(static_cast<std::size_t>(bucket));
  if (next != actions.end()) weights_.read_ahead(static_cast<std::size_t>(next->bucket));
}

void StepRunner::gather(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  works_[index] = result_.updated ? weights_.gather(index) : comm::Work();
  LOCKSTEP_FAILPOINT("train.gather");
}

}  // namespace lockstep::train
