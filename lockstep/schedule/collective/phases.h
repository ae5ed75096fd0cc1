// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: algorithms made of others. A collective becomes a list of phases, one after
// the other; in a phase groups of ranks work apart from each other, each on a task of its own.
#pragma once

#include <vector>

#include "lockstep/schedule/collective/compose.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

// What one group does in a phase. task.rank is left open: every member does its part.
struct Part {
  FlatAlgorithm algorithm;
  Task task;
  Place place;
};

// A rank that is a member of several groups only receives in them, so that none waits for another.
using Phase = std::vector<Part>;

// The part of whole.rank in every phase, appended to `whole`.
void append(Program& whole, const std::vector<Phase>& phases);

// The parts' formulas added up; the depth is that of the deepest.
PredictedCost cost_of(const Phase& phase, int world);

// Of all phases together; they count as if each began when the one before has ended everywhere.
PredictedCost cost_of(const std::vector<Phase>& phases, int world);

}  // namespace lockstep::schedule
