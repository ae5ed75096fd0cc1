// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/check/cost.h"

#include <numeric>

namespace lockstep::schedule {

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

}  // namespace lockstep::schedule
