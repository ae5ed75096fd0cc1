// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/cost.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/all_to_all.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/hierarchical.h"
#include "lockstep/schedule/collective/hosts.h"
#include "lockstep/schedule/collective/lane_tree.h"

namespace lockstep::schedule {
namespace {

// The longest chains of two phases follow each other only if one ends at the rank where the other begins;
// docs/algorithms.md says where they need not.
bool phases_may_not_meet(const CollectiveSpec& spec) {
  const std::vector<int>& hosts = spec.ranks_per_host;
  const bool one_size = std::ranges::adjacent_find(hosts, std::not_equal_to{}) == hosts.end();
  const bool enough = spec.count == 0 || spec.count >= static_cast<std::size_t>(spec.world);
  return !one_size || !enough || spec.op == Op::reduce || spec.op == Op::barrier;
}

PredictedCost hierarchical_cost(const CollectiveSpec& spec) {
  PredictedCost cost =
      spec.op == Op::all_to_all ? all_to_all_cost(spec) : cost_of(hierarchical_phases(spec), spec.world);
  cost.depth_is_bound = phases_may_not_meet(spec);
  return cost;
}

PhaseCost phase_cost(const Phase& phase, const CollectiveSpec& spec, const HostLayout& hosts) {
  PhaseCost result{.cost = cost_of(phase, spec.world)};
  for (const Part& part : phase) {
    const std::vector<Rank>& members = part.place.members;
    if (part.task.world() <= result.world) continue;
    result.world = part.task.world();
    result.op = part.task.op;
    result.between_hosts = hosts.host_of(members.front()) != hosts.host_of(members.back());
  }
  return result;
}

}  // namespace

std::vector<PhaseCost> predict_phases(const CollectiveSpec& spec) {
  validate(spec);
  LOCKSTEP_CHECK(spec.algorithm == Algorithm::hierarchical && spec.op != Op::all_to_all,
                 "only these are made of phases");
  const HostLayout hosts(spec.ranks_per_host);
  std::vector<PhaseCost> costs;
  for (const Phase& phase : hierarchical_phases(spec)) {
    PhaseCost cost = phase_cost(phase, spec, hosts);
    if (cost.world > 1) costs.push_back(std::move(cost));
  }
  return costs;
}

PredictedCost predict_cost(const CollectiveSpec& spec) {
  validate(spec);
  if (!spec.pieces.empty()) return lane_tree_cost(spec);
  if (spec.algorithm == Algorithm::hierarchical) return hierarchical_cost(spec);
  if (spec.op == Op::all_to_all) return all_to_all_cost(spec);
  return cost_of(flat_algorithm(spec.algorithm), task_of(spec, 0));
}

}  // namespace lockstep::schedule
