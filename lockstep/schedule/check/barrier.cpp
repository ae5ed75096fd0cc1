// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/barrier.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace lockstep::schedule {
namespace {

using RankSet = std::vector<bool>;

void add(RankSet& set, const RankSet& more) {
  for (std::size_t rank = 0; rank < set.size(); ++rank) set[rank] = set[rank] || more[rank];
}

// Who is known to have entered, as rounds go by.
struct Knowledge {
  RankSet at_round_start;
  RankSet now;
  int round = 0;
};

}  // namespace

std::optional<Violation> check_barrier(const Network& network, const Progress& progress) {
  const auto world = static_cast<std::size_t>(network.world);
  std::vector<Knowledge> ranks(world);
  for (std::size_t rank = 0; rank < world; ++rank) {
    ranks[rank].now.assign(world, false);
    ranks[rank].now[rank] = true;
    ranks[rank].at_round_start = ranks[rank].now;
  }

  std::vector<RankSet> told(network.moves.size());  // by the value of each move
  for (const std::uint32_t move : progress.order) {
    const MoveNode& node = network.moves[move];
    Knowledge& knowledge = ranks[static_cast<std::size_t>(node.rank)];
    if (node.round != knowledge.round) {
      knowledge.round = node.round;
      knowledge.at_round_start = knowledge.now;
    }
    told[move] = knowledge.at_round_start;
    for (const std::uint32_t message : network.taken_by(node))
      add(told[move], told[network.messages[message].sender]);
    add(knowledge.now, told[move]);
  }

  for (std::size_t rank = 0; rank < world; ++rank) {
    for (std::size_t other = 0; other < world; ++other) {
      if (ranks[rank].now[other]) continue;
      return Violation{.rank = static_cast<Rank>(rank),
                       .range = {},
                       .reason = fmt::format("can leave the barrier before rank {} has entered it", other)};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::schedule
