// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/pass_runner.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/failpoint.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/schedule/pipeline/message.h"

namespace lockstep::train {

using schedule::Act;
using schedule::Action;

PassRunner::PassRunner(const model::Model& model, const Holding& holding, const GradientSlots& slots,
                       std::vector<std::int64_t> hidden, at::ScalarType type)
    : model_(model),
      holding_(holding),
      slots_(slots),
      tied_(model::is_tied(model)),
      mail_(holding.groups.pipeline, std::move(hidden), type) {}

void PassRunner::begin(const Step& step) {
  step_.emplace(step);
  in_flight_.clear();
  in_flight_.resize(static_cast<std::size_t>(step.lanes * step.micro_batches));
  std::vector<schedule::PipelineMessage> messages;
  for (const Action& action : step.program.program.actions) {
    if (action.act == Act::receive_activation || action.act == Act::receive_gradient) {
      messages.push_back(message_of(action));
    }
  }
  mail_.expect(std::move(messages));
}

// --- Places.

PassRunner::InFlight& PassRunner::in_flight(const Action& action) {
  return in_flight_[static_cast<std::size_t>(number_of(action))];
}

int PassRunner::number_of(const Action& action) const {
  return (action.lane - step_->first_lane) * step_->micro_batches + action.micro_batch;
}

schedule::PipelineMessage PassRunner::message_of(const Action& action) const {
  const bool is_activation = action.act == Act::receive_activation || action.act == Act::send_activation;
  const bool is_receipt = action.act == Act::receive_activation || action.act == Act::receive_gradient;
  const schedule::PipelineEntry entry = {
      .pass = is_activation ? schedule::Pass::forward : schedule::Pass::backward,
      .micro_batch = number_of(action),
      .chunk = action.chunk};
  return is_receipt ? *schedule::input_of(stage().placement, stage().rank, entry)
                    : *schedule::output_of(stage().placement, stage().rank, entry);
}

std::size_t chunk_of_block(const schedule::Stage& stage, int block) {
  const auto found = std::ranges::find_if(
      stage.chunks, [&](const schedule::Chunk& chunk) { return block < chunk.end_block; });
  return static_cast<std::size_t>(found - stage.chunks.begin());
}

// --- Passes.

void PassRunner::forward(const Action& action) {
  LOCKSTEP_FAILPOINT("train.forward");
  const auto index = static_cast<std::size_t>(action.block);
  const std::size_t chunk = chunk_of_block(stage(), action.block);
  InFlight& flight = in_flight(action);
  if (flight.passes.empty()) {
    flight = {.batch = step_->batch(action.lane, action.micro_batch),
              .passes = std::vector<model::BlockPass>(model_.blocks.size()),
              .inputs = std::vector<at::Tensor>(model_.blocks.size()),
              .additions = std::vector<nn::Additions>(model_.blocks.size()),
              .activations = std::move(flight.activations),
              .gradients = std::vector<at::Tensor>(stage().chunks.size())};
    flight.batch.team = holding_.team();
    flight.activations.resize(stage().chunks.size());
  }
  if (action.block == stage().chunks[chunk].first_block) hidden_ = std::move(flight.activations[chunk]);
  const model::Block& block = *model_.blocks[index];
  const model::BlockParameters parameters = slots_.parameters(action.slot).of_block(index);
  if (action.keeps) {
    flight.passes[index] = model::forward(block, hidden_, flight.batch, parameters);
    hidden_ = flight.passes[index].output.detach();
  } else {
    flight.inputs[index] = hidden_;
    hidden_ = model::forward_only(block, hidden_, flight.batch, parameters);
  }
  if (action.block + 1 != stage().chunks[chunk].end_block) return;
  if (const auto next = own_neighbour(stage(), static_cast<int>(chunk), 1)) {
    flight.activations[static_cast<std::size_t>(*next)] = std::exchange(hidden_, {});
  }
}

void PassRunner::lose(const Action& action) {
  InFlight& flight = in_flight(action);
  const nn::HeadLoss loss =
      nn::head_loss_with_gradients(hidden_, holding_.head_of(slots_.parameters(action.slot)),
                                   flight.batch.targets, step_->loss_scale, flight.batch.lanes());
  step_->lane_losses[static_cast<std::size_t>(action.lane)] += kernels::sum_of(nn::floats_of(loss.losses));
  flight.gradients.back() = loss.x_gradient;
  hidden_ = at::Tensor();
}

void PassRunner::recompute(const Action& action) {
  const auto index = static_cast<std::size_t>(action.block);
  InFlight& flight = in_flight(action);
  flight.passes[index] =
      model::forward(*model_.blocks[index], std::exchange(flight.inputs[index], at::Tensor()), flight.batch,
                     slots_.parameters(action.slot).of_block(index));
}

void PassRunner::backward(const Action& action) {
  LOCKSTEP_FAILPOINT("train.backward");
  const auto index = static_cast<std::size_t>(action.block);
  const std::size_t chunk = chunk_of_block(stage(), action.block);
  InFlight& flight = in_flight(action);
  if (action.block + 1 == stage().chunks[chunk].end_block) gradient_ = std::move(flight.gradients[chunk]);
  model::BlockPass pass = std::exchange(flight.passes[index], {});
  if (action.act == Act::backward_input) {
    gradient_ = model::backward(std::move(pass), gradient_, flight.additions[index]);
  } else if (tied_ && action.block == 0) {
    gradient_ = model::backward(std::move(pass), gradient_, put_off_[action.lane]);
  } else {
    gradient_ = model::backward(std::move(pass), gradient_);
  }
  if (action.block != stage().chunks[chunk].first_block) return;
  if (const auto before = own_neighbour(stage(), static_cast<int>(chunk), -1)) {
    flight.gradients[static_cast<std::size_t>(*before)] = std::exchange(gradient_, {});
  }
  if (action.act == Act::backward) end_chunk(flight);
}

// A micro-batch that has passed all chunks is forgotten, its data too.
void PassRunner::end_chunk(InFlight& flight) const {
  if (++flight.chunks_done == stage().chunks.size()) flight = {};
}

void PassRunner::backward_weight(const Action& action) {
  InFlight& flight = in_flight(action);
  nn::Additions& additions = flight.additions[static_cast<std::size_t>(action.block)];
  if (tied_ && action.block == 0) {
    put_off_[action.lane].append(std::move(additions));
  } else {
    additions.run();
  }
  const std::size_t chunk = chunk_of_block(stage(), action.block);
  if (action.block == stage().chunks[chunk].first_block) end_chunk(flight);
}

// --- Between stages.

void PassRunner::receive(const Action& action) {
  InFlight& flight = in_flight(action);
  const auto chunk = static_cast<std::size_t>(action.chunk);
  if (action.act == Act::receive_gradient) {
    flight.gradients[chunk] = mail_.receive(message_of(action));
    return;
  }
  flight.activations.resize(stage().chunks.size());
  flight.activations[chunk] = mail_.receive(message_of(action));
}

void PassRunner::send(const Action& action) {
  mail_.send(message_of(action),
             std::exchange(action.act == Act::send_activation ? hidden_ : gradient_, at::Tensor()));
}

}  // namespace lockstep::train
