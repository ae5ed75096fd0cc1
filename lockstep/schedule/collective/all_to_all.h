// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// Private to schedule/collective: all_to_all by every algorithm.
Program generate_all_to_all(const CollectiveSpec& spec, Rank rank);
PredictedCost all_to_all_cost(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
