// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule::testing {

// The table of docs/algorithms.md for one operation of a hierarchy. Additions are left out.
PredictedCost hierarchical_by_table(const CollectiveSpec& spec);

// What a group of ranks does, alone or as a part of a hierarchy: nothing if there is one rank or no element.
PredictedCost part_by_table(Algorithm algorithm, const Task& task);

}  // namespace lockstep::schedule::testing
