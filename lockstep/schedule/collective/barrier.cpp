// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/barrier.h"

#include <utility>

#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

// Messages leave from element 0; each arrives in an element of its own.
class Tokens {
 public:
  explicit Tokens(const Task& task) : program_(empty_program(task)) {}

  void send_to(Round& round, std::vector<Rank> peers) { add(round, send(element(0), std::move(peers))); }
  void receive_from(Round& round, Rank peer) { add(round, receive(peer, element(++arrivals_))); }
  void end_round(Round round) { add(program_, std::move(round)); }

  Program finish() && {
    if (!program_.rounds.empty()) program_.buffer_elements = {arrivals_ + 1};
    return std::move(program_);
  }

 private:
  static Slice element(std::size_t index) { return {.buffer = 0, .range = {index, index + 1}}; }

  Program program_;
  std::size_t arrivals_ = 0;
};

}  // namespace

Program barrier_by_exchange(const Task& task) {
  Tokens tokens(task);
  Round round;
  const std::vector<Rank> peers = all_but(task.world(), task.rank);
  for (Rank peer : peers) tokens.receive_from(round, peer);
  tokens.send_to(round, peers);
  tokens.end_round(std::move(round));
  return std::move(tokens).finish();
}

Program barrier_by_dissemination(const Task& task) {
  Tokens tokens(task);
  const int world = task.world();
  for (int distance = 1; distance < world; distance *= 2) {
    Round round;
    tokens.receive_from(round, (task.rank - distance + world) % world);
    tokens.send_to(round, {(task.rank + distance) % world});
    tokens.end_round(std::move(round));
  }
  return std::move(tokens).finish();
}

Program barrier_over(const TreeNode& up, const TreeNode& down, const Task& task) {
  Tokens tokens(task);
  Round gather;
  for (Rank child : up.children()) tokens.receive_from(gather, child);
  tokens.end_round(std::move(gather));
  Round turn;
  if (down.parent) tokens.receive_from(turn, *down.parent);
  if (up.parent) tokens.send_to(turn, {*up.parent});
  tokens.end_round(std::move(turn));
  Round release;
  tokens.send_to(release, down.children());
  tokens.end_round(std::move(release));
  return std::move(tokens).finish();
}

}  // namespace lockstep::schedule
