// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/execution.h"

#include <algorithm>

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {

using schedule::kLocal;
using schedule::Move;
using schedule::Source;

namespace {

// The most that one call combines, so that other operations of the engine get their turn.
constexpr std::size_t kMaxPieceBytes = std::size_t{4} << 20;

// A receive that needs no arithmetic on the way: the channel may deliver it straight to its place.
bool is_plain_receive(const Move& move) {
  return move.sources.size() == 1 && move.sources[0].from != kLocal;
}

// A send of local memory as it is.
bool is_plain_send(const Move& move) {
  return !move.into.has_value();
}

}  // namespace

Execution::Execution(Binding binding, std::pmr::memory_resource& memory)
    : binding_(std::move(binding)),
      element_bytes_(size_of(binding_.arithmetic.dtype)),
      moves_(&memory),
      incoming_(&memory),
      outgoing_(&memory),
      peers_(&memory),
      posted_to_(binding_.ports.size(), 0, &memory),
      operands_(&memory),
      destinations_(&memory) {
  for (std::size_t rank = 0; rank < binding_.ports.size(); ++rank)
    posted_to_[rank] = binding_.ports[rank].sent;
}

bool Execution::advance() {
  bool moved = false;
  while (!done()) {
    if (!started_) start_round();
    moved |= advance_round();
    if (!round_finished()) return moved;
    ++round_;
    started_ = false;
    moved = true;
  }
  return moved;
}

void Execution::start_round() {
  const schedule::Round& round = binding_.program->rounds[round_];
  moves_.clear();
  incoming_.clear();
  outgoing_.clear();
  peers_.clear();
  spills_.clear();
  moves_.reserve(round.size());
  started_ = true;
  // Receives first: a peer that finds our offer also finds where its answer may land.
  for (const Move& move : round) {
    MoveState& state = moves_.emplace_back();
    state.move = &move;
    state.first_source = incoming_.size();
    state.first_target = outgoing_.size();
    state.elements = schedule::elements_of(move);
    post_receives(state);
    for (Rank peer : move.send_to) {
      outgoing_.push_back({.index = posted_to_[peer]++});
      peer_of_round(peer).sends = posted_to_[peer];
    }
  }
}

Execution::Peer& Execution::peer_of_round(Rank rank) {
  const auto known =
      std::find_if(peers_.begin(), peers_.end(), [rank](const Peer& peer) { return peer.rank == rank; });
  return known != peers_.end() ? *known : peers_.emplace_back(Peer{.rank = rank});
}

void Execution::post_receives(MoveState& state) {
  const std::vector<Source>& sources = state.move->sources;
  const std::size_t size = bytes(state.elements);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    Incoming& entry = incoming_.emplace_back();
    const Rank from = sources[i].from;
    if (from == kLocal) continue;
    Port& port = binding_.ports[from];
    entry.index = port.received++;
    peer_of_round(from).receives = port.received;
    // Only the last message of a peer can be read in place: the ones before it must be out of its way.
    const bool last_of_peer =
        std::none_of(sources.begin() + static_cast<std::ptrdiff_t>(i) + 1, sources.end(),
                     [from](const Source& later) { return later.from == from; });
    if (is_plain_receive(*state.move)) {
      entry.received = address(*state.move->into);
    } else if (!last_of_peer) {
      entry.received = spill(size);
    }
    if (entry.received != nullptr) {
      port.channel->receive(binding_.envelope, {entry.received, size});
    } else {
      port.channel->receive_view(binding_.envelope, size);
    }
  }
}

bool Execution::advance_round() {
  bool moved = false;
  for (MoveState& state : moves_) {
    if (state.stage == Stage::waiting) moved |= fire(state);
    if (state.stage == Stage::fired) moved |= offer(state);
  }
  for (const Peer& peer : peers_) moved |= binding_.ports[peer.rank].channel->pump();
  return moved;
}

bool Execution::round_finished() const {
  return std::all_of(moves_.begin(), moves_.end(),
                     [](const MoveState& state) { return state.stage == Stage::offered; }) &&
         std::all_of(peers_.begin(), peers_.end(), [this](const Peer& peer) {
           const transport::Channel& channel = *binding_.ports[peer.rank].channel;
           return channel.sends_done() >= peer.sends && channel.receives_done() >= peer.receives;
         });
}

bool Execution::fire(MoveState& state) {
  if (is_plain_send(*state.move)) {
    state.stage = Stage::fired;
    return true;
  }
  return is_plain_receive(*state.move) ? fire_received(state) : combine_available(state);
}

bool Execution::fire_received(MoveState& state) {
  const Incoming& entry = incoming_[state.first_source];
  const Port& port = binding_.ports[state.move->sources[0].from];
  if (port.channel->receives_done() <= entry.index) return false;
  if (state.move->finish && binding_.arithmetic.divide_by != 1) {
    const kernels::Operand operand{.data = entry.received};
    kernels::combine(binding_.arithmetic, {&operand, 1}, {&entry.received, 1}, state.elements);
  }
  state.stage = Stage::fired;
  return true;
}

std::size_t Execution::available(const MoveState& state) {
  std::size_t elements = std::min(state.elements - state.elements_done, kMaxPieceBytes / element_bytes_);
  for (std::size_t i = 0; i < state.move->sources.size(); ++i) {
    const Rank from = state.move->sources[i].from;
    if (from == kLocal) continue;
    const Incoming& entry = incoming_[state.first_source + i];
    transport::Channel& channel = *binding_.ports[from].channel;
    if (entry.received != nullptr) {
      if (channel.receives_done() <= entry.index) return 0;
    } else {
      if (channel.receives_done() != entry.index) return 0;
      elements = std::min(elements, channel.view().size() / element_bytes_);
    }
  }
  return elements;
}

void Execution::decide_landings(const MoveState& state) {
  for (std::size_t i = 0; i < state.move->send_to.size(); ++i) {
    Outgoing& outgoing = outgoing_[state.first_target + i];
    if (outgoing.decided) continue;
    outgoing.decided = true;
    const Rank peer = state.move->send_to[i];
    if (may_offer(peer, outgoing))
      outgoing.landing = binding_.ports[peer].channel->landing(binding_.envelope);
  }
}

bool Execution::combine_available(MoveState& state) {
  const std::size_t elements = available(state);
  if (elements == 0) return false;
  decide_landings(state);

  const std::size_t offset = bytes(state.elements_done);
  operands_.clear();
  for (std::size_t i = 0; i < state.move->sources.size(); ++i) {
    const Source& source = state.move->sources[i];
    const Incoming& entry = incoming_[state.first_source + i];
    const std::byte* data = source.from == kLocal       ? address(source.slice) + offset
                            : entry.received != nullptr ? entry.received + offset
                                                        : binding_.ports[source.from].channel->view().data();
    operands_.push_back({.data = data, .merges = source.merges});
  }
  destinations_.assign(1, address(*state.move->into) + offset);
  for (std::size_t i = 0; i < state.move->send_to.size(); ++i) {
    const Bytes landing = outgoing_[state.first_target + i].landing;
    if (!landing.empty()) destinations_.push_back(landing.data() + offset);
  }
  kernels::Combination arithmetic = binding_.arithmetic;
  if (!state.move->finish) arithmetic.divide_by = 1;
  kernels::combine(arithmetic, operands_, destinations_, elements);

  for (std::size_t i = 0; i < state.move->sources.size(); ++i) {
    const Rank from = state.move->sources[i].from;
    if (from != kLocal && incoming_[state.first_source + i].received == nullptr) {
      binding_.ports[from].channel->consume(bytes(elements));
    }
  }
  state.elements_done += elements;
  if (state.elements_done == state.elements && all_received(state)) state.stage = Stage::fired;
  return true;
}

// A channel does not count a message whose sender took it back while it was being read.
bool Execution::all_received(const MoveState& state) const {
  for (std::size_t i = 0; i < state.move->sources.size(); ++i) {
    const Rank from = state.move->sources[i].from;
    if (from == kLocal) continue;
    if (binding_.ports[from].channel->receives_done() <= incoming_[state.first_source + i].index)
      return false;
  }
  return true;
}

// Messages to a peer are offered in the order of the program: that is how the peer tells them apart.
bool Execution::may_offer(Rank peer, const Outgoing& outgoing) const {
  return binding_.ports[peer].sent == outgoing.index;
}

bool Execution::offer(MoveState& state) {
  bool moved = false;
  bool all = true;
  const schedule::Slice& from = is_plain_send(*state.move) ? state.move->sources[0].slice : *state.move->into;
  for (std::size_t i = 0; i < state.move->send_to.size(); ++i) {
    Outgoing& outgoing = outgoing_[state.first_target + i];
    if (outgoing.offered) continue;
    const Rank peer = state.move->send_to[i];
    if (!may_offer(peer, outgoing)) {
      all = false;
      continue;
    }
    Port& port = binding_.ports[peer];
    if (outgoing.landing.empty()) {
      port.channel->send(binding_.envelope, {address(from), bytes(state.elements)});
    } else {
      port.channel->put(binding_.envelope);
    }
    ++port.sent;
    outgoing.offered = true;
    moved = true;
  }
  if (all) {
    state.stage = Stage::offered;
    moved = true;
  }
  return moved;
}

std::vector<Waiting> Execution::waiting() const {
  std::vector<Waiting> all;
  for (const MoveState& state : moves_) {
    const std::size_t total = bytes(state.elements);
    for (std::size_t i = 0; i < state.move->sources.size(); ++i) {
      const Rank from = state.move->sources[i].from;
      if (from == kLocal) continue;
      const transport::Channel& channel = *binding_.ports[from].channel;
      const std::uint64_t index = incoming_[state.first_source + i].index;
      if (channel.receives_done() > index) continue;
      const std::size_t arrived = channel.receives_done() == index ? channel.received_bytes() : 0;
      all.push_back({.peer = from, .done_bytes = arrived, .total_bytes = total});
    }
    for (std::size_t i = 0; i < state.move->send_to.size(); ++i) {
      const Rank to = state.move->send_to[i];
      const bool done = binding_.ports[to].channel->sends_done() > outgoing_[state.first_target + i].index;
      if (!done) all.push_back({.peer = to, .done_bytes = 0, .total_bytes = total});
    }
  }
  return all;
}

void Execution::abandon() {
  for (const Peer& peer : peers_) binding_.ports[peer.rank].channel->abandon();
}

std::byte* Execution::address(const schedule::Slice& slice) const {
  return binding_.buffers[slice.buffer] + bytes(slice.range.begin);
}

std::byte* Execution::spill(std::size_t size) {
  return spills_.emplace_back(std::make_unique<std::byte[]>(size)).get();
}

}  // namespace lockstep::comm
