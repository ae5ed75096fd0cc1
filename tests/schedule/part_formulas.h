// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule::testing {

// The tables of docs/algorithms.md, of all operations but all_to_all, for at least two ranks and one element.
// Additions are left out. Chunks may have any size, as in a part of a hierarchy.
PredictedCost tree_by_table(const Task& task);
PredictedCost mesh_by_table(const Task& task);

}  // namespace lockstep::schedule::testing
