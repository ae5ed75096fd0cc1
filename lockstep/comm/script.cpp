// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/script.h"

#include <algorithm>
#include <utility>

namespace lockstep::comm {
namespace {

using schedule::kLocal;
using schedule::Move;

Script::Kind kind_of(const Move& move) {
  if (!move.into) return Script::Kind::send;
  const bool plain = move.sources.size() == 1 && move.sources[0].from != kLocal;
  return plain ? Script::Kind::receive : Script::Kind::combine;
}

std::uint32_t index_of_peer(std::vector<Script::Peer>& peers, Rank rank) {
  auto known = std::find_if(peers.begin(), peers.end(),
                            [rank](const Script::Peer& peer) { return peer.rank == rank; });
  if (known == peers.end()) known = peers.insert(known, {.rank = rank});
  return static_cast<std::uint32_t>(known - peers.begin());
}

// Only the last message of a peer can be read in place: the ones before it must be out of its way.
bool is_last_of_peer(const Move& move, std::size_t source) {
  return std::none_of(move.sources.begin() + static_cast<std::ptrdiff_t>(source) + 1, move.sources.end(),
                      [from = move.sources[source].from](const auto& later) { return later.from == from; });
}

}  // namespace

Script::Script(schedule::Program program) : program_(std::move(program)), rounds_(program_.rounds.size()) {
  for (std::size_t i = 0; i < rounds_.size(); ++i) {
    for (const Move& move : program_.rounds[i]) append(rounds_[i], move);
    for (const Peer& peer : rounds_[i].peers) hears_ |= peer.receives > 0;
  }
}

void Script::append(Round& round, const Move& move) {
  const Kind kind = kind_of(move);
  round.steps.push_back({.move = &move,
                         .kind = kind,
                         .elements = schedule::elements_of(move),
                         .first_source = static_cast<std::uint32_t>(round.sources.size()),
                         .first_target = static_cast<std::uint32_t>(round.targets.size())});
  for (std::size_t i = 0; i < move.sources.size(); ++i) {
    Source& source = round.sources.emplace_back();
    source.from = move.sources[i].from;
    if (source.from == kLocal) continue;
    source.peer = index_of_peer(round.peers, source.from);
    source.message = round.peers[source.peer].receives++;
    source.in_place = kind == Kind::combine && is_last_of_peer(move, i);
    if (kind != Kind::combine || source.in_place) continue;
    source.spill = round.spills++;
    if (spill_elements_.size() < round.spills) spill_elements_.push_back(0);
    std::size_t& room = spill_elements_[source.spill];
    room = std::max(room, round.steps.back().elements);
  }
  for (Rank to : move.send_to) {
    const std::uint32_t peer = index_of_peer(round.peers, to);
    round.targets.push_back({.to = to, .peer = peer, .message = round.peers[peer].sends++});
  }
}

std::size_t Script::moves() const {
  std::size_t moves = 0;
  for (const Round& round : rounds_) moves += round.steps.size();
  return moves;
}

}  // namespace lockstep::comm
