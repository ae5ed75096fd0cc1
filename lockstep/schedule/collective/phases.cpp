// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/phases.h"

#include <algorithm>
#include <functional>

namespace lockstep::schedule {

void append(Program& whole, const std::vector<Phase>& phases) {
  for (const Phase& phase : phases) {
    for (const Part& part : phase) {
      const std::vector<Rank>& members = part.place.members;
      const auto member = std::find(members.begin(), members.end(), whole.rank);
      if (member == members.end()) continue;
      Task task = part.task;
      task.rank = static_cast<Rank>(member - members.begin());
      append(whole, part.algorithm.generate(task), part.place);
    }
  }
}

PredictedCost cost_of(const Phase& phase, int world) {
  PredictedCost total{.elements_sent = std::vector<std::size_t>(world, 0)};
  for (const Part& part : phase) {
    const PredictedCost cost = cost_of(part.algorithm, part.task);
    for (std::size_t i = 0; i < part.place.members.size(); ++i) {
      total.elements_sent[part.place.members[i]] += cost.elements_sent[i];
    }
    total.elements_combined += cost.elements_combined;
    total.depth = std::max(total.depth, cost.depth);
  }
  return total;
}

PredictedCost cost_of(const std::vector<Phase>& phases, int world) {
  PredictedCost total{.elements_sent = std::vector<std::size_t>(world, 0)};
  for (const Phase& phase : phases) {
    const PredictedCost cost = cost_of(phase, world);
    std::ranges::transform(total.elements_sent, cost.elements_sent, total.elements_sent.begin(), std::plus{});
    total.elements_combined += cost.elements_combined;
    total.depth += cost.depth;
  }
  return total;
}

}  // namespace lockstep::schedule
