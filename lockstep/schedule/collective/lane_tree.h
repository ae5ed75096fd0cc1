// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// Private to schedule/collective: the programs of specs with lane pieces, and what they cost.
Program generate_lane_tree(const CollectiveSpec& spec, Rank rank);
PredictedCost lane_tree_cost(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
