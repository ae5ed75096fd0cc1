// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/cost.h"

#include <numeric>
#include <string>

#include <fmt/format.h>

#include "lockstep/schedule/collective/cost.h"

namespace lockstep::schedule {
namespace {

constexpr Rank kAllRanks = -1;

Violation costs_something_else(Rank rank, std::string reason) {
  return {.rank = rank, .round = -1, .move = -1, .range = {}, .reason = std::move(reason)};
}

}  // namespace

Cost count_cost(std::span<const Program> programs, const Progress& progress) {
  Cost cost;
  cost.depth = progress.depth;
  for (const Program& program : programs) {
    std::size_t sent = 0;
    std::size_t combined = 0;
    for (const Round& round : program.rounds) {
      for (const Move& move : round) {
        sent += elements_of(move) * move.send_to.size();
        combined += elements_of(move) * (move.sources.size() - 1);
      }
    }
    cost.elements_sent.push_back(sent);
    cost.elements_combined.push_back(combined);
    const auto scratch = program.buffer_elements.begin() + program.scratch_from;
    cost.scratch_elements.push_back(std::accumulate(scratch, program.buffer_elements.end(), std::size_t{0}));
  }
  return cost;
}

std::optional<Violation> compare_with_formulas(const CollectiveSpec& spec, const Cost& counted) {
  const PredictedCost predicted = predict_cost(spec);
  for (Rank rank = 0; rank < spec.world; ++rank) {
    const std::size_t sent = counted.elements_sent[rank];
    const std::size_t expected = predicted.elements_sent[rank];
    if (sent == expected) continue;
    return costs_something_else(rank, fmt::format("sends {} elements, by the formula {}", sent, expected));
  }
  const std::vector<std::size_t>& by_rank = counted.elements_combined;
  const std::size_t combined = std::accumulate(by_rank.begin(), by_rank.end(), std::size_t{0});
  if (combined != predicted.elements_combined) {
    return costs_something_else(
        kAllRanks, fmt::format("add {} elements, by the formula {}", combined, predicted.elements_combined));
  }
  const bool too_deep = counted.depth > predicted.depth;
  const bool too_shallow = counted.depth < predicted.depth && !predicted.depth_is_bound;
  if (!too_deep && !too_shallow) return std::nullopt;
  return costs_something_else(kAllRanks,
                              fmt::format("are {} messages deep, by the formula {}{}", counted.depth,
                                          predicted.depth_is_bound ? "at most " : "", predicted.depth));
}

}  // namespace lockstep::schedule
