// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/execution.h"

#include <algorithm>
#include <thread>

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"

namespace lockstep::comm {

using schedule::kLocal;

namespace {

// The most that one call combines, so that other operations of the engine get their turn.
constexpr std::size_t kMaxPieceBytes = std::size_t{4} << 20;

}  // namespace

void Execution::start() {
  element_bytes_ = size_of(binding.arithmetic.dtype);
  round_ = 0;
  started_ = false;
}

bool Execution::advance() {
  bool moved = false;
  while (!done()) {
    if (!started_) {
      start_round();
      if (round_ == binding.script->rounds().size() / 2) LOCKSTEP_FAILPOINT("comm.operation.middle");
    }
    moved |= advance_round();
    if (!round_finished()) return moved;
    ++round_;
    started_ = false;
    moved = true;
  }
  return moved;
}

void Execution::start_round() {
  const Script::Round& round = this->round();
  steps_.assign(round.steps.size(), {});
  received_.assign(round.sources.size(), nullptr);
  targets_.assign(round.targets.size(), {});
  peers_.clear();
  for (const Script::Peer& peer : round.peers) {
    const Port& port = binding.ports[peer.rank];
    peers_.push_back({.sent = port.sent, .received = port.received});
  }
  started_ = true;
  // Receives first: a peer that finds our offer also finds where its answer may land.
  for (const Script::Step& step : round.steps) post_receives(step);
}

void Execution::post_receives(const Script::Step& step) {
  const std::size_t size = bytes(step.elements);
  const std::span<const Script::Source> sources = round().sources_of(step);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].from == kLocal) continue;
    Port& port = binding.ports[sources[i].from];
    ++port.received;
    if (sources[i].in_place) {
      port.channel->receive_view(binding.envelope, size);
      continue;
    }
    std::byte*& received = received_[step.first_source + i];
    received =
        step.kind == Script::Kind::receive ? address(*step.move->into) : binding.spills[sources[i].spill];
    port.channel->receive(binding.envelope, {received, size});
  }
}

bool Execution::advance_round() {
  const Script::Round& round = this->round();
  bool moved = false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].stage == Stage::waiting) moved |= fire(round.steps[i], steps_[i]);
    if (steps_[i].stage == Stage::fired) moved |= offer(round.steps[i], steps_[i]);
  }
  for (const Script::Peer& peer : round.peers) moved |= pump(*binding.ports[peer.rank].channel);
  return moved;
}

bool Execution::pump(transport::Channel& channel) {
  const std::uint64_t before = channel.copied_bytes();
  const bool moved = channel.pump();
  peer_bytes_ += channel.copied_bytes() - before;
  return moved;
}

bool Execution::round_finished() const {
  for (const StepState& state : steps_) {
    if (state.stage != Stage::offered) return false;
  }
  const std::vector<Script::Peer>& peers = round().peers;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const transport::Channel& channel = *binding.ports[peers[i].rank].channel;
    // Only what this round sends and receives: on a port for send and recv others may be under way.
    const bool sent = peers[i].sends == 0 || channel.sends_done() >= peers_[i].sent + peers[i].sends;
    const bool received =
        peers[i].receives == 0 || channel.receives_done() >= peers_[i].received + peers[i].receives;
    if (!sent || !received) return false;
  }
  return true;
}

bool Execution::fire(const Script::Step& step, StepState& state) {
  switch (step.kind) {
    case Script::Kind::send:
      state.stage = Stage::fired;
      return true;
    case Script::Kind::receive:
      return fire_received(step, state);
    case Script::Kind::combine:
      return combine_available(step, state);
  }
  return false;
}

bool Execution::fire_received(const Script::Step& step, StepState& state) {
  const Script::Source& source = round().sources[step.first_source];
  if (binding.ports[source.from].channel->receives_done() <= number_of(source)) return false;
  if (step.move->finish && binding.arithmetic.divide_by != 1) {
    std::byte* const received = received_[step.first_source];
    const kernels::Operand operand{.data = received};
    kernels::combine(binding.arithmetic, {&operand, 1}, {&received, 1}, step.elements);
  }
  state.stage = Stage::fired;
  return true;
}

std::size_t Execution::available(const Script::Step& step, const StepState& state) {
  std::size_t elements = std::min(step.elements - state.elements_done, kMaxPieceBytes / element_bytes_);
  for (const Script::Source& source : round().sources_of(step)) {
    if (source.from == kLocal) continue;
    transport::Channel& channel = *binding.ports[source.from].channel;
    if (!source.in_place) {
      if (channel.receives_done() <= number_of(source)) return 0;
    } else {
      if (channel.receives_done() != number_of(source)) return 0;
      elements = std::min(elements, channel.view().size() / element_bytes_);
    }
  }
  return elements;
}

void Execution::decide_landings(const Script::Step& step) {
  const std::span<const Script::Target> targets = round().targets_of(step);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    TargetState& state = targets_[step.first_target + i];
    if (state.decided) continue;
    state.decided = true;
    if (may_offer(targets[i]))
      state.landing = binding.ports[targets[i].to].channel->landing(binding.envelope, bytes(step.elements));
  }
}

bool Execution::combine_available(const Script::Step& step, StepState& state) {
  const std::size_t elements = available(step, state);
  if (elements == 0) return false;
  decide_landings(step);

  const std::size_t offset = bytes(state.elements_done);
  const std::span<const Script::Source> sources = round().sources_of(step);
  operands_.clear();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const schedule::Source& source = step.move->sources[i];
    const std::byte* data = source.from == kLocal ? address(source.slice) + offset
                            : sources[i].in_place ? binding.ports[source.from].channel->view().data()
                                                  : received_[step.first_source + i] + offset;
    operands_.push_back({.data = data, .merges = source.merges});
  }
  destinations_.assign(1, address(*step.move->into) + offset);
  for (std::size_t i = 0; i < step.move->send_to.size(); ++i) {
    const Bytes landing = targets_[step.first_target + i].landing;
    if (!landing.empty()) destinations_.push_back(landing.data() + offset);
  }
  kernels::Combination arithmetic = binding.arithmetic;
  if (!step.move->finish) arithmetic.divide_by = 1;
  kernels::combine(arithmetic, operands_, destinations_, elements);

  peer_bytes_ += (destinations_.size() - 1) * bytes(elements);
  for (const Script::Source& source : sources) {
    if (!source.in_place) continue;
    binding.ports[source.from].channel->consume(bytes(elements));
    peer_bytes_ += bytes(elements);
  }
  state.elements_done += elements;
  if (state.elements_done == step.elements && all_received(step)) state.stage = Stage::fired;
  return true;
}

// A channel does not count a message whose sender took it back while it was being read.
bool Execution::all_received(const Script::Step& step) const {
  const std::span<const Script::Source> sources = round().sources_of(step);
  return std::all_of(sources.begin(), sources.end(), [this](const Script::Source& source) {
    return source.from == kLocal || binding.ports[source.from].channel->receives_done() > number_of(source);
  });
}

// Messages to a peer are offered in the order of the program: that is how the peer tells them apart.
bool Execution::may_offer(const Script::Target& target) const {
  return binding.ports[target.to].sent == number_of(target);
}

bool Execution::offer(const Script::Step& step, StepState& state) {
  bool moved = false;
  bool all = true;
  const schedule::Slice& from =
      step.kind == Script::Kind::send ? step.move->sources[0].slice : *step.move->into;
  const std::span<const Script::Target> targets = round().targets_of(step);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    TargetState& target = targets_[step.first_target + i];
    if (target.offered) continue;
    if (!may_offer(targets[i])) {
      all = false;
      continue;
    }
    Port& port = binding.ports[targets[i].to];
    if (target.landing.empty()) {
      port.channel->send(binding.envelope, {address(from), bytes(step.elements)});
    } else {
      port.channel->put(binding.envelope);
    }
    ++port.sent;
    target.offered = true;
    moved = true;
  }
  if (all) {
    state.stage = Stage::offered;
    moved = true;
  }
  return moved;
}

// Of its oldest message something is here that waits for what others send: nothing more of this peer is
// needed now, and it may have left.
bool Execution::waits_for_others(Rank peer) const {
  const std::vector<Script::Step>& steps = round().steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const Script::Source& source : round().sources_of(steps[i])) {
      if (source.from != peer || !source.in_place) continue;
      const transport::Channel& channel = *binding.ports[peer].channel;
      if (channel.receives_done() != number_of(source)) continue;
      return channel.received_bytes() / element_bytes_ > steps_[i].elements_done;
    }
  }
  return false;
}

std::vector<Waiting> Execution::waiting() const {
  std::vector<Waiting> all;
  if (done() || !started_) return all;
  for (const Script::Step& step : round().steps) {
    const std::size_t total = bytes(step.elements);
    for (const Script::Source& source : round().sources_of(step)) {
      if (source.from == kLocal) continue;
      const transport::Channel& channel = *binding.ports[source.from].channel;
      const std::uint64_t number = number_of(source);
      if (channel.receives_done() > number || waits_for_others(source.from)) continue;
      const std::size_t arrived = channel.receives_done() == number ? channel.received_bytes() : 0;
      all.push_back({.peer = source.from, .done_bytes = arrived, .total_bytes = total});
    }
    for (const Script::Target& target : round().targets_of(step)) {
      const bool sent = binding.ports[target.to].channel->sends_done() > number_of(target);
      if (!sent) all.push_back({.peer = target.to, .done_bytes = 0, .total_bytes = total});
    }
  }
  return all;
}

void Execution::release() {
  binding.script.reset();
}

void Execution::abandon() {
  if (done() || !started_) return;
  for (const Script::Peer& peer : round().peers) binding.ports[peer.rank].channel->abandon();
}

void Execution::settle(const Deadline& patience) const {
  if (done() || !started_) return;
  for (const Script::Peer& peer : round().peers) {
    const transport::Channel& channel = *binding.ports[peer.rank].channel;
    while (!channel.settled() && !patience.passed()) std::this_thread::yield();
  }
}

}  // namespace lockstep::comm
