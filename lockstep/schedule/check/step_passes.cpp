// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/step_passes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/check/step_wrong.h"
#include "lockstep/schedule/pipeline/message.h"

namespace lockstep::schedule {

PassChecker::PassChecker(const StepSpec& spec)
    : spec_(spec),
      stage_(stage_of(spec)),
      first_part_(chunk_of_part(stage_, 0)),
      last_part_(chunk_of_part(stage_, stage_.placement.parts() - 1)),
      slot_of_lane_(stage_.chunks.size()),
      cleared_(stage_.chunks.size()),
      due_weights_(stage_.chunks.size(), 0) {
  const auto micro_batches = static_cast<std::size_t>(spec.end_lane - spec.first_lane) *
                             static_cast<std::size_t>(spec.micro_batches);
  for (const Chunk& held : stage_.chunks) {
    const Progress fresh = {
        .forward = held.first_block,
        .backward = held.end_block - 1,
        .weight = held.end_block - 1,
        .recorded = std::vector<bool>(static_cast<std::size_t>(held.end_block - held.first_block))};
    progress_.emplace_back(micro_batches, fresh);
  }
}

// --- Lanes and places.

void PassChecker::begin_lane(const Action& action) {
  chunk(action.chunk);
  require(!under_way_, "a lane begins in the middle of a pass");
  require(action.lane >= spec_.first_lane && action.lane < spec_.end_lane,
          fmt::format("lane {} is not owned", action.lane));
  bind_slot(action, action.chunk);
  require(cleared_[static_cast<std::size_t>(action.chunk)].insert(action.lane).second,
          "a lane begins twice on a chunk");
}

// From now on the lane's gradients of the chunk are in the slot.
void PassChecker::bind_slot(const Action& action, int number) {
  std::map<int, int>& slots = slot_of_lane_[static_cast<std::size_t>(number)];
  if (!slots.emplace(action.lane, action.slot).second) return require_slot(action, number);
  for (const auto& [lane, slot] : slots) {
    const bool is_unsent = receives_head() && number == *last_part_ && !head_gradients_[lane].sent;
    require(lane == action.lane || slot != action.slot || (is_done(lane, number) && !is_unsent),
            fmt::format("slot {} is cleared while a lane uses it", action.slot));
  }
}

int PassChecker::number_of(const Action& action) const {
  require(action.lane >= spec_.first_lane && action.lane < spec_.end_lane,
          fmt::format("lane {} is not owned", action.lane));
  require(action.micro_batch >= 0 && action.micro_batch < spec_.micro_batches,
          fmt::format("there is no micro-batch {} in a lane", action.micro_batch));
  return (action.lane - spec_.first_lane) * spec_.micro_batches + action.micro_batch;
}

const Chunk& PassChecker::chunk(int number) const {
  require(number >= 0 && static_cast<std::size_t>(number) < stage_.chunks.size(), "there is no such chunk");
  return stage_.chunks[static_cast<std::size_t>(number)];
}

int PassChecker::chunk_of_block(int block) const {
  for (std::size_t i = 0; i < stage_.chunks.size(); ++i) {
    const Chunk& held = stage_.chunks[i];
    if (block >= held.first_block && block < held.end_block) return static_cast<int>(i);
  }
  throw StepWrong{fmt::format("block {} is not held", block)};
}

PassChecker::Progress& PassChecker::progress(int number, int micro_batch) {
  return progress_[static_cast<std::size_t>(number)][static_cast<std::size_t>(micro_batch)];
}

// Also compares the slot with that of the lane.
PassChecker::Site PassChecker::site_of_block(const Action& action, int block) {
  const int micro_batch = number_of(action);
  const int number = chunk_of_block(block);
  require_slot(action, number);
  return {micro_batch, number, chunk(number), progress(number, micro_batch)};
}

void PassChecker::require_slot(const Action& action, int number) const {
  const std::map<int, int>& slots = slot_of_lane_[static_cast<std::size_t>(number)];
  const auto found = slots.find(action.lane);
  require(found != slots.end(), fmt::format("lane {} has not begun on the chunk", action.lane));
  require(found->second == action.slot, "a gradient goes to another lane's slot");
}

void PassChecker::require_cleared(const Action& action, int number) const {
  require(cleared_[static_cast<std::size_t>(number)].contains(action.lane),
          fmt::format("lane {} has not begun on the chunk", action.lane));
}

bool PassChecker::is_done(int lane, int number) const {
  const int last = (lane - spec_.first_lane + 1) * spec_.micro_batches;
  return due_weights_[static_cast<std::size_t>(number)] >= last;
}

bool PassChecker::all_passes_are_done() const {
  const auto is_sent = [](const auto& lane) { return lane.second.sent; };
  return passes_ == stage_.passes && (!receives_head() || std::ranges::all_of(head_gradients_, is_sent));
}

// --- Passes. One at a time: what it receives comes first and what it sends last, so nobody waits for more
// than the programs of the pipeline say.

void PassChecker::enter(Pass pass, const Site& site) {
  const PipelineEntry entry = {.pass = pass, .micro_batch = site.micro_batch, .chunk = site.number};
  if (!under_way_) under_way_ = entry;
  require(*under_way_ == entry, "a pass begins before the one under way has ended");
}

void PassChecker::leave() {
  passes_.push_back(*std::exchange(under_way_, std::nullopt));
  require(passes_.size() <= stage_.passes.size() && passes_.back() == stage_.passes[passes_.size() - 1],
          fmt::format("{} is not the pass that is due", to_string(passes_.back())));
}

PassChecker::Neighbours PassChecker::neighbours_of(const PipelineEntry& entry) const {
  const auto is_message = [](const auto& message) { return message && message->from != message->to; };
  return {.receives = is_message(input_of(stage_.placement, stage_.rank, entry)),
          .sends = is_message(output_of(stage_.placement, stage_.rank, entry))};
}

// Whole or split, as the spec has planned it for the micro-batch.
Pass PassChecker::way_back_due(const Site& site) const {
  for (std::size_t i = passes_.size(); i < stage_.passes.size(); ++i) {
    const PipelineEntry& entry = stage_.passes[i];
    if (entry.chunk == site.number && entry.micro_batch == site.micro_batch && entry.makes_input_gradient()) {
      return entry.pass;
    }
  }
  return Pass::backward;
}

void PassChecker::pass_on(const Action& action) {
  const int micro_batch = number_of(action);
  const Site site = {micro_batch, action.chunk, chunk(action.chunk), progress(action.chunk, micro_batch)};
  const Chunk& held = site.held;
  Progress& state = site.state;
  const bool is_activation = action.act == Act::receive_activation || action.act == Act::send_activation;
  const bool is_receipt = action.act == Act::receive_activation || action.act == Act::receive_gradient;
  const Pass pass = is_activation ? Pass::forward : way_back_due(site);
  const Neighbours neighbours = neighbours_of({pass, micro_batch, action.chunk});
  require(is_receipt ? neighbours.receives : neighbours.sends, "a message that nobody needs");
  enter(pass, site);
  if (action.act == Act::receive_activation) {
    require(state.forward == held.first_block && !std::exchange(state.received_activation, true),
            "an activation is received when it is not due");
  } else if (action.act == Act::send_activation) {
    require(state.forward == held.end_block && !std::exchange(state.sent_activation, true),
            "an activation is sent before it is made, or twice");
    leave();
  } else if (action.act == Act::receive_gradient) {
    require(state.forward == held.end_block && state.backward == held.end_block - 1 &&
                !std::exchange(state.received_gradient, true),
            "a gradient is received when it is not due");
  } else {
    require(state.backward == held.first_block - 1 && !std::exchange(state.sent_gradient, true),
            "a gradient is sent before it is made, or twice");
    leave();
  }
}

void PassChecker::forward(const Action& action) {
  number_of(action);
  if (spec_.shards_gradients) bind_slot(action, chunk_of_block(action.block));
  const Site site = site_of_block(action, action.block);
  const Chunk& held = site.held;
  // The stage with the loss must be able to send the gradient of the tied head as soon as it has it.
  if (sends_head() && site.number == *first_part_) require_cleared(action, site.number);
  enter(Pass::forward, site);
  const Neighbours neighbours = neighbours_of(*under_way_);
  require(action.block == site.state.forward,
          fmt::format("block {} runs forward when block {} is due", action.block, site.state.forward));
  require(!neighbours.receives || site.state.received_activation, "a block runs forward without its input");
  if (const auto before = own_neighbour(stage_, site.number, -1);
      before && action.block == held.first_block) {
    require(progress(*before, site.micro_batch).forward == chunk(*before).end_block,
            "a chunk runs forward before the one that it reads from");
  }
  ++site.state.forward;
  if (action.block == held.first_block) bytes_ += input_bytes(held);
  bytes_ += memory(action.block).output;
  keep(action.block, site, action.keeps);
  if (!action.keeps) cost_.kept_inputs = std::max(cost_.kept_inputs, ++inputs_);
  const bool comes_loss = held.end_block == spec_.blocks;
  if (site.state.forward == held.end_block && !neighbours.sends && !comes_loss) leave();
}

void PassChecker::lose(const Action& action) {
  const int micro_batch = number_of(action);
  const int number = chunk_of_block(spec_.blocks - 1);
  // A tied head adds to the gradients of block 0, if they are here.
  const int of_head = spec_.tied && first_part_ ? *first_part_ : number;
  require_slot(action, of_head);
  require_cleared(action, of_head);
  const Site site = {micro_batch, number, chunk(number), progress(number, micro_batch)};
  ++head_gradients_[action.lane].losses;
  enter(Pass::forward, site);
  require(site.state.forward == spec_.blocks && !std::exchange(site.state.lost, true),
          "the loss is not computed after the last block, once");
  leave();
}

void PassChecker::recompute(const Action& action) {
  const Site site = site_of_block(action, action.block);
  require(site.state.forward == site.held.end_block && action.block == site.state.backward,
          "a block is recomputed before it is due");
  enter(way_back_due(site), site);
  require_gradient(action, site);
  require(!site.state.recorded[static_cast<std::size_t>(action.block - site.held.first_block)],
          "a block is recomputed whose pass was kept");
  --inputs_;
  keep(action.block, site, true);
}

void PassChecker::keep(int block, const Site& site, bool recorded) {
  site.state.recorded[static_cast<std::size_t>(block - site.held.first_block)] = recorded;
  if (!recorded) return;
  cost_.kept_passes = std::max(cost_.kept_passes, ++passes_kept_);
  bytes_ += memory(block).inner;
}

// The gradient that the way back through a chunk begins with.
void PassChecker::require_gradient(const Action& action, const Site& site) {
  if (action.block != site.held.end_block - 1) return;
  if (site.held.end_block == spec_.blocks) {
    require(site.state.lost, "the way back begins before the loss");
  } else if (const auto after = own_neighbour(stage_, site.number, 1)) {
    require(progress(*after, site.micro_batch).backward == chunk(*after).first_block - 1,
            "a chunk runs backward before the one that its gradient comes from");
  } else {
    require(site.state.received_gradient, "a block runs backward without its gradient");
  }
}

bool PassChecker::backward(const Action& action) {
  const Site site = site_of_block(action, action.block);
  require_cleared(action, site.number);
  const bool is_whole = action.act == Act::backward;
  enter(is_whole ? Pass::backward : Pass::backward_input, site);
  require(site.state.forward == site.held.end_block && action.block == site.state.backward,
          fmt::format("block {} runs backward when block {} is due", action.block, site.state.backward));
  require(site.state.recorded[static_cast<std::size_t>(action.block - site.held.first_block)],
          fmt::format("block {} runs backward without a recorded pass", action.block));
  require_gradient(action, site);
  const Neighbours neighbours = neighbours_of(*under_way_);
  cost_.pass_bytes = std::max(cost_.pass_bytes, bytes_ + memory(action.block).work);
  --site.state.backward;
  const bool completes = is_whole && finish_weights(action, site);
  if (site.state.backward < site.held.first_block && !neighbours.sends) leave();
  return completes;
}

bool PassChecker::add_weights(const Action& action) {
  const Site site = site_of_block(action, action.block);
  enter(Pass::backward_weight, site);
  require(site.state.backward == site.held.first_block - 1,
          "weights get their gradients before the way back has ended");
  const bool completes = finish_weights(action, site);
  if (action.block == site.held.first_block) leave();
  return completes;
}

bool PassChecker::finish_weights(const Action& action, const Site& site) {
  int& due = due_weights_[static_cast<std::size_t>(site.number)];
  require(site.micro_batch == due,
          fmt::format("the gradients of micro-batch {} are added when those of {} are due", site.micro_batch,
                      due));
  require(action.block == site.state.weight,
          fmt::format("the weights of block {} get their gradients when block {} is due", action.block,
                      site.state.weight));
  // What a tied block 0 puts off has the size of its output.
  const bool puts_off = spec_.tied && action.block == 0;
  bytes_ -= memory(action.block).inner + (puts_off ? 0 : memory(action.block).output);
  --passes_kept_;
  --site.state.weight;
  if (action.block == site.held.first_block) {
    bytes_ -= input_bytes(site.held);
    ++due;
  }
  return !puts_off && action.micro_batch + 1 == spec_.micro_batches;
}

// --- A tied head.

PassChecker::HeadGradient& PassChecker::head_gradient(const Action& action) {
  require(!under_way_, "the gradient of a tied head is passed on in the middle of a pass");
  return head_gradients_[action.lane];
}

void PassChecker::send_head_gradient(const Action& action) {
  require(receives_head(), "a message that nobody needs");
  require_slot(action, *last_part_);
  HeadGradient& gradient = head_gradient(action);
  require(gradient.losses == spec_.micro_batches && !std::exchange(gradient.sent, true),
          "the gradient of the tied head is sent before it is complete, or twice");
}

void PassChecker::receive_head_gradient(const Action& action) {
  require(sends_head(), "a message that nobody needs");
  require_slot(action, *first_part_);
  require(!std::exchange(head_gradient(action).sent, true), "the gradient of a tied head is received twice");
}

void PassChecker::settle(const Action& action) {
  require(spec_.tied && first_part_, "nothing was put off");
  require_slot(action, *first_part_);
  HeadGradient& gradient = head_gradient(action);
  const bool is_there = sends_head() ? gradient.sent : gradient.losses == spec_.micro_batches;
  require(is_there, "a lane is settled before it has the gradient of the tied head");
  require(is_done(action.lane, *first_part_) && !std::exchange(gradient.settled, true),
          "a lane is settled before block 0 has all its gradients, or twice");
  bytes_ -= memory(0).output * static_cast<std::uint64_t>(spec_.micro_batches);
}

// --- Memory.

BlockMemory PassChecker::memory(int block) const {
  return spec_.block_memory.empty() ? BlockMemory{} : spec_.block_memory[static_cast<std::size_t>(block)];
}

// What the first block of a chunk reads, when it is not the first of the model.
std::uint64_t PassChecker::input_bytes(const Chunk& held) const {
  return held.first_block == 0 ? 0 : memory(held.first_block - 1).output;
}

}  // namespace lockstep::schedule
