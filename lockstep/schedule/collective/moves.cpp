// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/moves.h"

#include <utility>

namespace lockstep::schedule {

Source local(Slice slice, std::uint8_t merges) {
  return {.from = kLocal, .slice = slice, .merges = merges};
}

Source message(Rank from, std::uint8_t merges) {
  return {.from = from, .slice = {}, .merges = merges};
}

Move send(Slice from, std::vector<Rank> to) {
  return {.sources = {local(from)}, .into = std::nullopt, .send_to = std::move(to)};
}

Move receive(Rank from, Slice into, std::vector<Rank> pass_on_to) {
  return {.sources = {message(from)}, .into = into, .send_to = std::move(pass_on_to)};
}

Move combine_in_order(std::vector<Source> sources, Slice into) {
  for (std::size_t i = 1; i < sources.size(); ++i) sources[i].merges = 1;
  return {.sources = std::move(sources), .into = into, .send_to = {}};
}

void add(Round& round, Move move) {
  if (elements_of(move) == 0 || (!move.into && move.send_to.empty())) return;
  round.push_back(std::move(move));
}

void add(Program& program, Round round) {
  if (!round.empty()) program.rounds.push_back(std::move(round));
}

std::vector<Rank> all_but(int world, Rank rank, Rank other) {
  std::vector<Rank> ranks;
  for (Rank peer = 0; peer < world; ++peer) {
    if (peer != rank && peer != other) ranks.push_back(peer);
  }
  return ranks;
}

}  // namespace lockstep::schedule
