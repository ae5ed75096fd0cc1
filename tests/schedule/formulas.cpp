// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/formulas.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/schedule/collective/cost.h"

namespace lockstep::schedule::testing {
namespace {

// Of some hierarchies the formula is a bound; docs/algorithms.md says of which, and why.
bool depth_is_exact(const CollectiveSpec& spec) {
  if (spec.algorithm != Algorithm::hierarchical) return true;
  const std::vector<int>& hosts = spec.ranks_per_host;
  const bool one_size = std::ranges::adjacent_find(hosts, std::not_equal_to{}) == hosts.end();
  const bool enough = spec.count == 0 || spec.count >= static_cast<std::size_t>(spec.world);
  return one_size && enough && spec.op != Op::reduce && spec.op != Op::barrier;
}

}  // namespace

std::string difference_from_formulas(const CollectiveSpec& spec, const Cost& counted) {
  const PredictedCost predicted = predict_cost(spec);
  const std::size_t combined =
      std::accumulate(counted.elements_combined.begin(), counted.elements_combined.end(), std::size_t{0});
  std::string difference;
  if (predicted.elements_sent != counted.elements_sent) {
    difference += fmt::format("sent by each rank: [{}], by the formula [{}]; ",
                              fmt::join(counted.elements_sent, " "), fmt::join(predicted.elements_sent, " "));
  }
  if (predicted.elements_combined != combined) {
    difference += fmt::format("combined: {}, by the formula {}; ", combined, predicted.elements_combined);
  }
  if (depth_is_exact(spec) ? predicted.depth != counted.depth : predicted.depth < counted.depth) {
    difference += fmt::format("depth: {}, by the formula {}; ", counted.depth, predicted.depth);
  }
  return difference;
}

}  // namespace lockstep::schedule::testing
