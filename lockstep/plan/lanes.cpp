// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/lanes.h"

#include "lockstep/spec/workload.h"

namespace lockstep::plan {

LaneOwnership first_ownership(const spec::RunSpec& run, int world) {
  const spec::Workload workload = spec::workload_of(run, world);
  const auto lanes = static_cast<int>(workload.lanes);
  const std::vector<double>& weights = run.parallelism.lane_weights;
  if (!weights.empty()) return weighted_ownership(lanes, weights);
  return even_ownership(lanes, static_cast<int>(workload.data_parallel));
}

}  // namespace lockstep::plan
