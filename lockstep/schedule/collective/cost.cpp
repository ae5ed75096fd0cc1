// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/cost.h"

#include "lockstep/schedule/collective/all_to_all.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/hierarchical.h"
#include "lockstep/schedule/collective/lane_tree.h"

namespace lockstep::schedule {

PredictedCost predict_cost(const CollectiveSpec& spec) {
  validate(spec);
  if (!spec.pieces.empty()) return lane_tree_cost(spec);
  if (spec.op == Op::all_to_all) return all_to_all_cost(spec);
  if (spec.algorithm == Algorithm::hierarchical) return cost_of(hierarchical_phases(spec), spec.world);
  return cost_of(flat_algorithm(spec.algorithm), task_of(spec, 0));
}

}  // namespace lockstep::schedule
