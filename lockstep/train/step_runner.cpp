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
#include "lockstep/schedule/pipeline/message.h"
#include "lockstep/train/shares.h"

namespace lockstep::train {
namespace {

using schedule::Act;
using schedule::Action;

// As many ranks are proved together with this one; of larger worlds these and this one alone.
constexpr int kProvedTogether = 64;

// Streams of the pipeline's group that StageMail leaves free.
constexpr std::uint32_t kHeadStream = 2;

// Which of the first block's parameters a tied head has.
std::size_t head_in_first_block(const model::Model& model) {
  const std::vector<model::ParameterSpec> specs = model.blocks.front()->parameters();
  return static_cast<std::size_t>(
      std::ranges::find(specs, model.head.weight.name, &model::ParameterSpec::name) - specs.begin());
}

// As the gradients are added: neighbours first.
double tree_sum(std::vector<double> values) {
  for (; values.size() > 1; values.resize(values.size() / 2)) {
    for (std::size_t i = 0; i < values.size() / 2; ++i) values[i] = values[2 * i] + values[2 * i + 1];
  }
  return values.front();
}

bool computes(Act act) {
  switch (act) {
    case Act::forward:
    case Act::loss:
    case Act::recompute:
    case Act::backward:
    case Act::backward_input:
    case Act::backward_weight:
    case Act::settle:
      return true;
    default:
      return false;
  }
}

}  // namespace

StepRunner::StepRunner(const model::Model& model, const Holding& holding, Weights& weights, StepPlan plan)
    : model_(model),
      holding_(holding),
      partition_(holding.partition),
      weights_(weights),
      plan_(std::move(plan)),
      tied_(model::is_tied(model)),
      slots_(holding, weights.working()),
      mail_(holding.groups.pipeline, plan_.hidden, weights.working().scalar_type()),
      works_(partition_.buckets.size()) {
  assign(plan_.lanes);
}

void StepRunner::assign(const LaneOwnership& lanes) {
  const comm::Communicator& data = holding_.groups.data;
  LOCKSTEP_CHECK(lanes.world() == data.size(), "lanes are owned by the data-parallel ranks");
  plan_.lanes = lanes;
  stage_ = schedule::stage_of(spec_of(data.rank(), holding_.groups.pipeline.rank()));
  program_ = proved_program();
  slots_.grow(program_.slots);
  sum_.emplace(data, lanes, partition_.shards_update, plan_.sum);
}

// --- The program.

schedule::StepSpec StepRunner::spec_of(Rank data_rank, Rank stage) const {
  const auto owner = static_cast<std::size_t>(data_rank);
  schedule::StepSpec spec = {.blocks = static_cast<int>(model_.blocks.size()),
                             .first_lane = plan_.lanes.first_lane[owner],
                             .end_lane = plan_.lanes.first_lane[owner + 1],
                             .micro_batches = plan_.micro_batches,
                             .recompute_every = plan_.recompute_every,
                             .shards_update = partition_.shards_update,
                             .tied = tied_,
                             .bucket_blocks = {}};
  if (holding_.groups.pipeline.size() > 1) {
    spec.stage =
        plan::stage_of(plan_.pipeline, stage, (spec.end_lane - spec.first_lane) * plan_.micro_batches);
  }
  // Those of other stages are theirs to prove.
  if (stage != holding_.groups.pipeline.rank()) return spec;
  for (const Bucket& bucket : partition_.buckets) spec.bucket_blocks.push_back(bucket.block);
  return spec;
}

schedule::StepProgram StepRunner::proved_program() const {
  const Rank rank = holding_.groups.data.rank();
  const Rank stage = holding_.groups.pipeline.rank();
  std::vector<schedule::StepSpec> specs = {spec_of(rank, stage)};
  std::vector<schedule::StepProgram> programs = {schedule::make_step(specs.front())};
  for (Rank other = 0; other < std::min(plan_.lanes.world(), kProvedTogether); ++other) {
    if (other == rank) continue;
    specs.push_back(spec_of(other, stage));
    programs.push_back(schedule::make_step(specs.back()));
  }
  auto wrong = schedule::check_steps(specs, programs);
  if (!wrong && specs.front().stage) {
    std::vector<schedule::StepSpec> stages;
    for (Rank other = 0; other < holding_.groups.pipeline.size(); ++other) {
      stages.push_back(spec_of(rank, other));
    }
    wrong = schedule::check_stages(stages);
  }
  LOCKSTEP_CHECK(!wrong, fmt::format("the step program of {} is wrong at action {}: {}",
                                     wrong->program == 0 ? "this rank" : "another rank",
                                     wrong->violation.action, wrong->violation.reason));
  return std::move(programs.front());
}

std::vector<schedule::PipelineMessage> StepRunner::messages_to_receive() const {
  std::vector<schedule::PipelineMessage> messages;
  for (const Action& action : program_.actions) {
    if (action.act == Act::receive_activation || action.act == Act::receive_gradient) {
      messages.push_back(message_of(action));
    }
  }
  return messages;
}

// --- Places.

StepRunner::InFlight& StepRunner::in_flight(const Action& action) {
  const int first = plan_.lanes.first_lane[static_cast<std::size_t>(holding_.groups.data.rank())];
  const int number = (action.lane - first) * plan_.micro_batches + action.micro_batch;
  return in_flight_[static_cast<std::size_t>(number)];
}

std::size_t StepRunner::chunk_of_block(int block) const {
  const auto found = std::ranges::find_if(
      stage_.chunks, [&](const schedule::Chunk& chunk) { return block < chunk.end_block; });
  return static_cast<std::size_t>(found - stage_.chunks.begin());
}

std::optional<std::size_t> StepRunner::own_neighbour(std::size_t chunk, int direction) const {
  const int part = stage_.placement.part_of(stage_.rank, static_cast<int>(chunk)) + direction;
  if (part < 0 || part >= stage_.placement.parts()) return std::nullopt;
  const auto neighbour = schedule::chunk_of_part(stage_, part);
  return neighbour ? std::optional(static_cast<std::size_t>(*neighbour)) : std::nullopt;
}

schedule::PipelineMessage StepRunner::message_of(const Action& action) const {
  const bool is_activation = action.act == Act::receive_activation || action.act == Act::send_activation;
  const bool is_receipt = action.act == Act::receive_activation || action.act == Act::receive_gradient;
  const int first = plan_.lanes.first_lane[static_cast<std::size_t>(holding_.groups.data.rank())];
  const schedule::PipelineEntry entry = {
      .pass = is_activation ? schedule::Pass::forward : schedule::Pass::backward,
      .micro_batch = (action.lane - first) * plan_.micro_batches + action.micro_batch,
      .chunk = action.chunk};
  return is_receipt ? *schedule::input_of(stage_.placement, stage_.rank, entry)
                    : *schedule::output_of(stage_.placement, stage_.rank, entry);
}

Range StepRunner::head_elements() const {
  const model::FlatLayout& layout = holding_.layout;
  const std::size_t parameter = layout.borrows_head() ? 0 : layout.of_block(0)[head_in_first_block(model_)];
  return elements_of(layout.places()[parameter]);
}

// --- The step.

StepResult StepRunner::run(const StepInputs& inputs) {
  result_ = {};
  lane_losses_.assign(static_cast<std::size_t>(plan_.lanes.lanes()), 0.0);
  in_flight_.clear();
  const int lanes = plan_.lanes.count_of(holding_.groups.data.rank());
  in_flight_.resize(static_cast<std::size_t>(lanes * plan_.micro_batches));
  mail_.expect(messages_to_receive());
  for (const Action& action : program_.actions) {
    const auto began = Clock::now();
    play(action, inputs);
    const auto ended = Clock::now();
    if (computes(action.act)) result_.compute_seconds += std::chrono::duration<double>(ended - began).count();
    if (inputs.observe) inputs.observe(action, began, ended);
  }
  mail_.finish();
  return result_;
}

void StepRunner::play(const Action& action, const StepInputs& inputs) {
  switch (action.act) {
    case Act::clear:
      return clear(action);
    case Act::receive_activation:
    case Act::receive_gradient:
      return receive(action);
    case Act::forward:
      return forward(action, inputs);
    case Act::send_activation:
    case Act::send_gradient:
      return send(action);
    case Act::loss:
      return lose(action, inputs);
    case Act::recompute:
      return recompute(action);
    case Act::backward:
    case Act::backward_input:
      return backward(action);
    case Act::backward_weight:
      return backward_weight(action);
    case Act::send_head_gradient:
      return send_head_gradient(action);
    case Act::receive_head_gradient:
      return head_gradients_[action.slot].wait();
    case Act::settle:
      return put_off_[action.lane].run();
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
    case Act::send_head:
      return send_head();
    case Act::receive_head:
      return receive_head();
  }
}

void StepRunner::clear(const Action& action) {
  const auto chunk = static_cast<std::size_t>(action.chunk);
  slots_.clear(action.slot, holding_.layout.chunks()[chunk]);
  if (!tied_) return;
  const int last_part = stage_.placement.parts() - 1;
  const bool is_first = schedule::chunk_of_part(stage_, 0) == action.chunk;
  const bool is_last = schedule::chunk_of_part(stage_, last_part) == action.chunk;
  if (is_last && holding_.layout.borrows_head()) {
    head_gradients_[action.slot].wait();
    slots_.clear(action.slot, head_elements());
  } else if (is_first && holder_of_part(last_part) != stage_.rank) {
    head_gradients_[action.slot] = holding_.groups.pipeline.recv_async(
        holder_of_part(last_part), slots_.bytes(action.slot, head_elements()), {.stream = kHeadStream});
  }
}

// --- Passes.

void StepRunner::forward(const Action& action, const StepInputs& inputs) {
  const auto index = static_cast<std::size_t>(action.block);
  const std::size_t chunk = chunk_of_block(action.block);
  InFlight& flight = in_flight(action);
  if (flight.passes.empty()) {
    flight = {.batch = inputs.batch(action.lane, action.micro_batch),
              .passes = std::vector<model::BlockPass>(model_.blocks.size()),
              .inputs = std::vector<at::Tensor>(model_.blocks.size()),
              .additions = std::vector<nn::Additions>(model_.blocks.size()),
              .activations = std::move(flight.activations),
              .gradients = std::vector<at::Tensor>(stage_.chunks.size())};
    flight.activations.resize(stage_.chunks.size());
  }
  if (action.block == stage_.chunks[chunk].first_block) hidden_ = std::move(flight.activations[chunk]);
  const model::Block& block = *model_.blocks[index];
  const model::BlockParameters parameters = slots_.parameters(action.slot).of_block(index);
  if (action.keeps) {
    flight.passes[index] = model::forward(block, hidden_, flight.batch, parameters);
    hidden_ = flight.passes[index].output.detach();
  } else {
    flight.inputs[index] = hidden_;
    hidden_ = model::forward_only(block, hidden_, flight.batch, parameters);
  }
  if (action.block + 1 != stage_.chunks[chunk].end_block) return;
  if (const auto next = own_neighbour(chunk, 1)) flight.activations[*next] = std::exchange(hidden_, {});
}

void StepRunner::lose(const Action& action, const StepInputs& inputs) {
  InFlight& flight = in_flight(action);
  const nn::HeadLoss loss = nn::head_loss_with_gradients(hidden_, slots_.parameters(action.slot).head(),
                                                         flight.batch.targets, inputs.loss_scale);
  lane_losses_[static_cast<std::size_t>(action.lane)] += kernels::sum_of(nn::floats_of(loss.losses));
  flight.gradients.back() = loss.x_gradient;
  hidden_ = at::Tensor();
}

void StepRunner::recompute(const Action& action) {
  const auto index = static_cast<std::size_t>(action.block);
  InFlight& flight = in_flight(action);
  flight.passes[index] =
      model::forward(*model_.blocks[index], std::exchange(flight.inputs[index], at::Tensor()), flight.batch,
                     slots_.parameters(action.slot).of_block(index));
}

void StepRunner::backward(const Action& action) {
  const auto index = static_cast<std::size_t>(action.block);
  const std::size_t chunk = chunk_of_block(action.block);
  InFlight& flight = in_flight(action);
  if (action.block + 1 == stage_.chunks[chunk].end_block) gradient_ = std::move(flight.gradients[chunk]);
  model::BlockPass pass = std::exchange(flight.passes[index], {});
  if (action.act == Act::backward_input) {
    gradient_ = model::backward(std::move(pass), gradient_, flight.additions[index]);
  } else if (tied_ && action.block == 0) {
    gradient_ = model::backward(std::move(pass), gradient_, put_off_[action.lane]);
  } else {
    gradient_ = model::backward(std::move(pass), gradient_);
  }
  if (action.block != stage_.chunks[chunk].first_block) return;
  if (const auto before = own_neighbour(chunk, -1)) {
    flight.gradients[*before] = std::exchange(gradient_, {});
  }
}

void StepRunner::backward_weight(const Action& action) {
  nn::Additions& additions = in_flight(action).additions[static_cast<std::size_t>(action.block)];
  if (tied_ && action.block == 0) {
    put_off_[action.lane].append(std::move(additions));
  } else {
    additions.run();
  }
}

// --- Between stages.

void StepRunner::receive(const Action& action) {
  InFlight& flight = in_flight(action);
  const auto chunk = static_cast<std::size_t>(action.chunk);
  if (action.act == Act::receive_gradient) {
    flight.gradients[chunk] = mail_.receive(message_of(action));
    return;
  }
  flight.activations.resize(stage_.chunks.size());
  flight.activations[chunk] = mail_.receive(message_of(action));
}

void StepRunner::send(const Action& action) {
  mail_.send(message_of(action),
             std::exchange(action.act == Act::send_activation ? hidden_ : gradient_, at::Tensor()));
}

void StepRunner::send_head_gradient(const Action& action) {
  head_gradients_[action.slot] = holding_.groups.pipeline.send_async(
      holder_of_part(0), slots_.bytes(action.slot, head_elements()), {.stream = kHeadStream});
}

void StepRunner::send_head() {
  if (!result_.updated) return;
  holding_.groups.pipeline.send(holder_of_part(stage_.placement.parts() - 1),
                                weights_.working(head_elements()),
                                {.dtype = weights_.dtype(), .stream = kHeadStream});
}

void StepRunner::receive_head() {
  if (!result_.updated) return;
  holding_.groups.pipeline.recv(holder_of_part(0), weights_.working(head_elements()),
                                {.dtype = weights_.dtype(), .stream = kHeadStream});
}

// --- Gradients and weights.

std::span<float> StepRunner::own_gradients(std::size_t bucket) const {
  return slots_.floats(result_slot(bucket), partition_.own[bucket]);
}

const std::vector<int>& StepRunner::piece_slots(std::size_t bucket) const {
  return program_.piece_slots[chunk_of_block(partition_.buckets[bucket].block)];
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
    if (sum_->takes_one_value() && slot != result) slots_.merge(result, slot, elements);
  }
  // The sums of earlier buckets have gone through the peers' gradients; a step later is soon enough.
  holding_.groups.data.forget_peer_memory();
  works_[index] = sum_->start(partials, slots_.bytes(result, elements));
}

// Every lane's loss is known to its owner, and zero elsewhere: the sum is exact.
void StepRunner::share_losses() {
  holding_.groups.world.all_reduce(std::as_writable_bytes(std::span(lane_losses_)), {.dtype = DType::fp64});
  result_.loss_sum = tree_sum(lane_losses_);
}

void StepRunner::clip(const StepInputs& inputs) {
  constexpr std::size_t kBlock = kernels::kSquaresBlock;
  std::vector<double> squares(holding_.layout.elements_of_whole() / kBlock, 0.0);
  for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
    for (const auto& [elements, in_whole] : holding_.layout.segments()) {
      const Range own = intersection(partition_.own[bucket], elements);
      const std::size_t first = (in_whole + own.begin - elements.begin) / kBlock;
      if (own.empty()) continue;
      kernels::sums_of_squares(slots_.floats(result_slot(bucket), own),
                               std::span(squares).subspan(first, own.size() / kBlock));
    }
  }
  // As for the losses: each block of squares is known to one rank.
  const Groups& groups = holding_.groups;
  const comm::Communicator& knowing = partition_.shards_update ? groups.world : groups.pipeline;
  knowing.all_reduce(std::as_writable_bytes(std::span(squares)), {.dtype = DType::fp64});
  const double norm = std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  result_.gradient_norm = norm * inputs.gradient_scale;
  result_.updated = std::isfinite(norm);
  if (!result_.updated) result_.not_finite = first_not_finite();
  const bool too_long = inputs.max_norm > 0 && result_.gradient_norm > inputs.max_norm;
  gradient_factor_ = inputs.gradient_scale * (too_long ? inputs.max_norm / result_.gradient_norm : 1.0);
}

// A value that is not finite spreads to all blocks that come later on the way back.
std::optional<std::size_t> StepRunner::first_not_finite() const {
  const model::FlatLayout& layout = holding_.layout;
  const std::vector<std::size_t> order = backward_order(holding_.whole);
  auto first = static_cast<std::int64_t>(order.size());
  for (std::size_t i = layout.borrows_head() ? 1 : 0; i < layout.specs().size(); ++i) {
    const auto place = std::ranges::find_if(order, [&](std::size_t parameter) {
      return holding_.whole.specs()[parameter].name == layout.specs()[i].name;
    });
    for (std::size_t bucket = 0; bucket < partition_.own.size(); ++bucket) {
      const Range own = intersection(partition_.own[bucket], elements_of(layout.places()[i]));
      if (own.empty() || !kernels::first_not_finite(slots_.floats(result_slot(bucket), own))) continue;
      first = std::min<std::int64_t>(first, place - order.begin());
    }
  }
  holding_.groups.world.all_reduce(as_writable_bytes_of(first),
                                   {.dtype = DType::int64, .op = comm::ReduceOp::min});
  if (static_cast<std::size_t>(first) == order.size()) return std::nullopt;
  return order[static_cast<std::size_t>(first)];
}

at::Tensor StepRunner::gather_gradients() const {
  return gather_whole(holding_, [&](std::size_t bucket) { return own_gradients(bucket); });
}

void StepRunner::update(int bucket, const StepInputs& inputs) {
  if (!result_.updated) return;
  const auto index = static_cast<std::size_t>(bucket);
  weights_.update(inputs.optimizer, index, own_gradients(index), static_cast<float>(gradient_factor_));
}

void StepRunner::gather(int bucket) {
  const auto index = static_cast<std::size_t>(bucket);
  const comm::Communicator& data = holding_.groups.data;
  data.forget_peer_memory();
  works_[index] = result_.updated
                      ? data.all_gather_async(weights_.working(index), {.dtype = weights_.dtype()})
                      : comm::Work();
}

}  // namespace lockstep::train
