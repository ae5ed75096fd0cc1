// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/formulas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/schedule/hierarchical_formulas.h"
#include "tests/schedule/ways.h"

namespace lockstep::schedule::testing {
namespace {

PredictedCost blocks_by_table(const CollectiveSpec& spec) {
  PredictedCost cost{.elements_sent = std::vector<std::size_t>(static_cast<std::size_t>(spec.world), 0)};
  if (spec.count == 0) return cost;
  const GridShape grid = spec.algorithm == Algorithm::mesh ? spec.grid : squarest_grid(spec.world, false);
  for (Rank origin = 0; origin < spec.world; ++origin) {
    for (Rank destination = 0; destination < spec.world; ++destination) {
      for (const Rank rank : way_of(spec.algorithm, origin, destination, grid)) {
        cost.elements_sent[static_cast<std::size_t>(rank)] += spec.count;
      }
    }
  }
  cost.depth = depth_of_ways(spec.algorithm, grid);
  return cost;
}

// (W - 1) n, but between H hosts one_shot adds on every one of them what else one of them would.
std::size_t additions(const CollectiveSpec& spec) {
  if (spec.op != Op::all_reduce && spec.op != Op::reduce_scatter && spec.op != Op::reduce) return 0;
  const auto world = static_cast<std::size_t>(spec.world);
  if (spec.algorithm != Algorithm::hierarchical) return (world - 1) * spec.count;
  const std::size_t hosts = spec.ranks_per_host.size();
  const bool everywhere = spec.op == Op::all_reduce && spec.outer == Algorithm::one_shot;
  return (world - hosts) * spec.count + (hosts - 1) * spec.count * (everywhere ? hosts : 1);
}

}  // namespace

PredictedCost documented_cost(const CollectiveSpec& spec) {
  PredictedCost cost = spec.algorithm == Algorithm::hierarchical ? hierarchical_by_table(spec)
                       : spec.op == Op::all_to_all               ? blocks_by_table(spec)
                                                   : part_by_table(spec.algorithm, task_of(spec, 0));
  cost.elements_combined = additions(spec);
  return cost;
}

std::string difference_from_formulas(const CollectiveSpec& spec) {
  const bool is_told_twice = spec.op == Op::all_to_all || spec.algorithm == Algorithm::tree ||
                             spec.algorithm == Algorithm::mesh || spec.algorithm == Algorithm::hierarchical;
  if (!is_told_twice) return "";
  const PredictedCost predicted = predict_cost(spec);
  const PredictedCost documented = documented_cost(spec);
  std::string difference;
  if (predicted.elements_sent != documented.elements_sent) {
    difference +=
        fmt::format("sent by each rank: [{}], by the tables [{}]; ", fmt::join(predicted.elements_sent, " "),
                    fmt::join(documented.elements_sent, " "));
  }
  if (predicted.elements_combined != documented.elements_combined) {
    difference += fmt::format("added: {}, by the tables {}; ", predicted.elements_combined,
                              documented.elements_combined);
  }
  if (predicted.depth != documented.depth) {
    difference += fmt::format("depth: {}, by the tables {}; ", predicted.depth, documented.depth);
  }
  return difference;
}

}  // namespace lockstep::schedule::testing
