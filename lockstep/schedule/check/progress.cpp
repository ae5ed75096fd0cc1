// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/progress.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace lockstep::schedule {
namespace {

// Levels count messages: a move's level is the longest chain of messages that must have arrived, one before
// the next can be offered, when it fires.
class Play {
 public:
  explicit Play(const Network& network)
      : network_(network), ranks_(network.rounds.size()), messages_(network.messages.size()) {
    moves_.resize(network.moves.size());
    for (std::size_t move = 0; move < moves_.size(); ++move) {
      moves_[move].missing = network.moves[move].taken.size();
    }
  }

  ProgressResult run() {
    for (Rank rank = 0; rank < network_.world; ++rank) enter_next_round(rank);
    for (std::size_t next = 0; next < order_.size(); ++next) fire(order_[next]);
    ProgressResult result{.progress = {.order = std::move(order_), .depth = depth_},
                          .violation = first_stuck()};
    return result;
  }

 private:
  struct RankState {
    int round = -1;
    std::size_t unfinished = 0;  // moves not fired and messages not taken, in this round
    int level = 0;               // at which this round started
    int next_level = 0;
  };
  struct MoveState {
    std::size_t missing = 0;  // messages that cannot be taken yet
    int level = 0;
    bool fired = false;
  };
  struct MessageState {
    bool offered = false;
    bool taken = false;
    bool available = false;
    int level = 0;
  };

  void enter_next_round(Rank rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    const std::vector<Range>& rounds = network_.rounds[static_cast<std::size_t>(rank)];
    state.level = state.next_level;
    while (++state.round < static_cast<int>(rounds.size())) {
      const Range round = rounds[static_cast<std::size_t>(state.round)];
      if (round.empty()) continue;
      for (std::size_t move = round.begin; move < round.end; ++move) {
        state.unfinished += 1 + network_.moves[move].sent.size();
      }
      for (std::size_t move = round.begin; move < round.end; ++move) {
        if (moves_[move].missing == 0) order_.push_back(static_cast<std::uint32_t>(move));
      }
      return;
    }
  }

  void fire(std::uint32_t move) {
    const MoveNode& node = network_.moves[move];
    MoveState& state = moves_[move];
    state.fired = true;
    state.level = ranks_[static_cast<std::size_t>(node.rank)].level;
    for (const std::uint32_t message : network_.taken_by(node)) {
      state.level = std::max(state.level, messages_[message].level + 1);
      const std::uint32_t previous = network_.messages[message].previous;
      if (previous != kNone) {
        state.level = std::max(state.level, moves_[network_.messages[previous].taker].level);
      }
    }
    depth_ = std::max(depth_, state.level);

    for (std::size_t message = node.sent.begin; message < node.sent.end; ++message) offer(message);
    for (const std::uint32_t message : network_.taken_by(node)) take(message, state.level);
    finish_one(node.rank, state.level);
  }

  // Offers a message whose move has fired, unless an earlier one of the pair is still to come; then those
  // that waited for it.
  void offer(std::size_t first) {
    for (std::size_t message = first; message != kNone; message = network_.messages[message].next) {
      const Message& edge = network_.messages[message];
      const bool in_turn = edge.previous == kNone || messages_[edge.previous].offered;
      if (!moves_[edge.sender].fired || !in_turn || messages_[message].offered) return;
      MessageState& state = messages_[message];
      state.offered = true;
      state.level = moves_[edge.sender].level;
      if (edge.previous != kNone) state.level = std::max(state.level, messages_[edge.previous].level);
      make_available(message);
    }
  }

  void take(std::uint32_t message, int level) {
    messages_[message].taken = true;
    const std::uint32_t next = network_.messages[message].next;
    if (next != kNone) make_available(next);
    finish_one(network_.moves[network_.messages[message].sender].rank, level);
  }

  // A message can be taken when it has been offered and the one before it is taken, or is taken by the same
  // move.
  void make_available(std::size_t message) {
    const Message& edge = network_.messages[message];
    const bool in_turn = edge.previous == kNone || messages_[edge.previous].taken ||
                         network_.messages[edge.previous].taker == edge.taker;
    if (!messages_[message].offered || !in_turn || messages_[message].available) return;
    messages_[message].available = true;
    const MoveNode& taker = network_.moves[edge.taker];
    if (--moves_[edge.taker].missing == 0 &&
        taker.round == ranks_[static_cast<std::size_t>(taker.rank)].round) {
      order_.push_back(edge.taker);
    }
  }

  void finish_one(Rank rank, int level) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.next_level = std::max(state.next_level, level);
    if (--state.unfinished == 0) enter_next_round(rank);
  }

  std::optional<Violation> first_stuck() const {
    for (Rank rank = 0; rank < network_.world; ++rank) {
      const std::vector<Range>& rounds = network_.rounds[static_cast<std::size_t>(rank)];
      const int at = ranks_[static_cast<std::size_t>(rank)].round;
      if (at >= static_cast<int>(rounds.size())) continue;
      const Range round = rounds[static_cast<std::size_t>(at)];
      for (std::size_t move = round.begin; move < round.end; ++move) {
        if (auto reason = stuck_reason(move)) {
          const MoveNode& node = network_.moves[move];
          return violation_at(node, {0, node.elements}, *reason);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> stuck_reason(std::size_t move) const {
    const MoveNode& node = network_.moves[move];
    if (!moves_[move].fired) {
      for (const std::uint32_t message : network_.taken_by(node)) {
        if (messages_[message].available) continue;
        return fmt::format("deadlock: it waits for a message that {} cannot send",
                           place_of(network_.messages[message].sender));
      }
    }
    for (std::size_t message = node.sent.begin; message < node.sent.end; ++message) {
      if (messages_[message].taken) continue;
      return fmt::format("deadlock: it sends a message that {} cannot take",
                         place_of(network_.messages[message].taker));
    }
    return std::nullopt;
  }

  // Where a move is, and where its rank got stuck.
  std::string place_of(std::uint32_t move) const {
    const MoveNode& node = network_.moves[move];
    const int at = ranks_[static_cast<std::size_t>(node.rank)].round;
    const bool done = at >= static_cast<int>(network_.rounds[static_cast<std::size_t>(node.rank)].size());
    return fmt::format("rank {} (round {}, move {}; {})", node.rank, node.round, node.index,
                       done ? "it has ended" : fmt::format("it is stuck in round {}", at));
  }

  const Network& network_;
  std::vector<RankState> ranks_;
  std::vector<MessageState> messages_;
  std::vector<MoveState> moves_;
  std::vector<std::uint32_t> order_;
  int depth_ = 0;
};

}  // namespace

ProgressResult check_progress(const Network& network) {
  return Play(network).run();
}

}  // namespace lockstep::schedule
