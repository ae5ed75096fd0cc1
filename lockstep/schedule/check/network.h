// SPDX-License-Identifier: Apache-2.0
//
// The programs of all ranks as one graph: moves, and the messages that join them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/schedule/check/check.h"

namespace lockstep::schedule {

inline constexpr std::uint32_t kNone = UINT32_MAX;

struct MoveNode {
  const Move* move = nullptr;  // in the programs the network was made from
  Rank rank = 0;
  int round = 0;
  int index = 0;  // in the round
  std::size_t elements = 0;
  Range taken;  // of Network::taken
  Range sent;   // of Network::messages
};

struct Message {
  std::uint32_t sender = kNone;  // moves
  std::uint32_t taker = kNone;
  std::uint32_t previous = kNone;  // messages between the same two ranks, in the order they travel
  std::uint32_t next = kNone;
};

// Refers to the programs: they must outlive it.
struct Network {
  int world = 0;
  std::vector<MoveNode> moves;             // by rank, round, place in the round
  std::vector<Message> messages;           // by sender, then place in send_to
  std::vector<std::uint32_t> taken;        // messages by taker, then place among the sources
  std::vector<std::vector<Range>> rounds;  // by rank and round: of `moves`

  std::span<const std::uint32_t> taken_by(const MoveNode& node) const {
    return std::span(taken).subspan(node.taken.begin, node.taken.size());
  }
  std::span<const Message> sent_by(const MoveNode& node) const {
    return std::span(messages).subspan(node.sent.begin, node.sent.size());
  }
};

Violation violation_at(const MoveNode& node, Range range, std::string reason);

// All moves, with their messages not yet matched. The programs have passed check_rules().
Network gather_moves(std::span<const Program> programs);

// Matches the k-th message from a to b with the k-th that b takes from a.
std::optional<Violation> match_messages(Network& network);

}  // namespace lockstep::schedule
