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

// A phase of a hierarchy: groups of ranks, each inside a host or each across hosts, do one operation at the
// same time.
struct PhaseCost {
  bool between_hosts = false;
  Op op = Op::barrier;
  int world = 0;  // of the largest group
  PredictedCost cost;
};

// What predict_cost() adds up for a hierarchy: its phases one after the other, without those in which nobody
// has a peer. For every operation but all_to_all. Throws UsageError where validate() would.
std::vector<PhaseCost> predict_phases(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
