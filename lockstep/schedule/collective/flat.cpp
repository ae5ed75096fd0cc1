// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/flat.h"

#include "lockstep/base/error.h"

namespace lockstep::schedule {

FlatAlgorithm flat_algorithm(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return {generate_ring, ring_cost};
    case Algorithm::tree:
      return {generate_tree, tree_cost};
    case Algorithm::halving_doubling:
      return {generate_halving_doubling, halving_doubling_cost};
    case Algorithm::direct:
      return {generate_direct, direct_cost};
    case Algorithm::one_shot:
      return {generate_one_shot, one_shot_cost};
    case Algorithm::mesh:
      return {generate_mesh, mesh_cost};
    case Algorithm::hierarchical:
      break;
  }
  check_failed("algorithm is flat", "a hierarchy is made of phases");
}

PredictedCost cost_of(const FlatAlgorithm& algorithm, const Task& task) {
  if (task.world() == 1 || (task.count == 0 && task.op != Op::barrier)) {
    return {.elements_sent = std::vector<std::size_t>(task.world(), 0)};
  }
  return algorithm.formula(task);
}

std::size_t least_combined(const Task& task) {
  const bool reduces = task.op == Op::all_reduce || task.op == Op::reduce_scatter || task.op == Op::reduce;
  return reduces ? (task.world() - 1) * task.count : 0;
}

}  // namespace lockstep::schedule
