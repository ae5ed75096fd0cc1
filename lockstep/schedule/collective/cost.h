// SPDX-License-Identifier: Apache-2.0
//
// What a collective costs by the formulas of docs/algorithms.md, without generating a program. check/ counts
// the same in programs and refuses those that cost something else.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule {

struct PredictedCost {
  std::vector<std::size_t> elements_sent;  // by each rank
  std::size_t elements_combined = 0;       // additions, all ranks together
  int depth = 0;                           // messages that must follow one another
  bool depth_is_bound = false;  // some hierarchies, lanes in parts: there may be fewer than `depth`
};

// Throws UsageError where validate() would.
PredictedCost predict_cost(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
