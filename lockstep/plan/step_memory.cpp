// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/step_memory.h"

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/plan/block_memory.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/schedule/check/step.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"

namespace lockstep::plan {
namespace {

// Buckets do not change what is kept: one serves for all.
schedule::StepCost cost_of_step(const spec::RunSpec& run, int world, Rank rank) {
  const spec::Workload workload = spec::workload_of(run, world);
  const LaneOwnership lanes = first_ownership(run, world);
  schedule::StepSpec step = {
      .first_lane = lanes.first_lane[static_cast<std::size_t>(rank)],
      .end_lane = lanes.first_lane[static_cast<std::size_t>(rank) + 1],
      .micro_batches = static_cast<int>(workload.micro_batches_per_lane),
      .recompute_every = static_cast<int>(spec::recompute_stride(run.parallelism).value_or(0)),
      .block_memory = block_memory(run.model, run.training)};
  step.blocks = static_cast<int>(step.block_memory.size());
  const schedule::StepCheck check = schedule::check_step(step, schedule::make_step(step));
  LOCKSTEP_CHECK(!check.violation, check.violation->reason);
  return check.cost;
}

std::uint64_t optimizer_bytes(const spec::RunSpec& run) {
  const std::uint64_t moments = run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1;
  const std::uint64_t master = run.training.dtype == DType::fp32 ? 0 : 1;
  return (master + moments) * sizeof(float);
}

}  // namespace

StepMemory step_memory(const spec::RunSpec& run, int world, Rank rank) {
  const schedule::StepCost cost = cost_of_step(run, world, rank);
  const auto parameters = static_cast<std::uint64_t>(spec::parameter_count(run.model));
  const auto sharers = static_cast<std::uint64_t>(run.parallelism.zero_stage > 0 ? world : 1);
  const bool computes = cost.kept_passes > 0;
  return {.weights = parameters * size_of(run.training.dtype),
          .optimizer = (parameters + sharers - 1) / sharers * optimizer_bytes(run),
          .gradients = static_cast<std::uint64_t>(cost.slots) * parameters * sizeof(float),
          .activations = cost.pass_bytes + (computes ? head_memory(run.model, run.training) : 0)};
}

}  // namespace lockstep::plan
