// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_program.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/check/step.h"

namespace lockstep::train {
namespace {

// As many ranks are proved together with this one; of larger worlds these and this one alone.
constexpr int kProvedTogether = 64;

schedule::StepSpec spec_of(const model::Model& model, const Holding& holding, const StepPlan& plan,
                           Rank data_rank, Rank stage) {
  const auto owner = static_cast<std::size_t>(data_rank);
  schedule::StepSpec spec = {.blocks = static_cast<int>(model.blocks.size()),
                             .first_lane = plan.lanes.first_lane[owner],
                             .end_lane = plan.lanes.first_lane[owner + 1],
                             .micro_batches = plan.micro_batches,
                             .recompute_every = plan.recompute_every,
                             .shards_update = holding.partition.shards_update,
                             .shards_gradients = holding.shards_gradients,
                             .shards_weights = holding.shards_weights,
                             .copies_on_hosts = holding.copies_on_hosts,
                             .tied = model::is_tied(model),
                             .sums_shared = holding.tensor != nullptr,
                             .bucket_blocks = {}};
  const int micro_batches = (spec.end_lane - spec.first_lane) * plan.micro_batches;
  if (holding.groups.pipeline.size() == 1 && holding.shards_gradients) {
    spec.stage = schedule::breadth_first_stage(holding.chunks, micro_batches);
  } else if (holding.groups.pipeline.size() > 1) {
    spec.stage = plan::stage_of(plan.pipeline, stage, micro_batches);
  }
  // Those of other stages are theirs to prove.
  if (stage != holding.groups.pipeline.rank()) return spec;
  for (const Bucket& bucket : holding.partition.buckets) spec.bucket_blocks.push_back(bucket.block);
  return spec;
}

}  // namespace

StepProgram proved_program(const model::Model& model, const Holding& holding, const StepPlan& plan) {
  const Rank rank = holding.groups.data.rank();
  const Rank stage = holding.groups.pipeline.rank();
  std::vector<schedule::StepSpec> specs = {spec_of(model, holding, plan, rank, stage)};
  std::vector<schedule::StepProgram> programs = {schedule::make_step(specs.front())};
  for (Rank other = 0; other < std::min(plan.lanes.world(), kProvedTogether); ++other) {
    if (other == rank) continue;
    specs.push_back(spec_of(model, holding, plan, other, stage));
    programs.push_back(schedule::make_step(specs.back()));
  }
  auto wrong = schedule::check_steps(specs, programs);
  if (!wrong && holding.groups.pipeline.size() > 1) {
    std::vector<schedule::StepSpec> stages;
    for (Rank other = 0; other < holding.groups.pipeline.size(); ++other) {
      stages.push_back(spec_of(model, holding, plan, rank, other));
    }
    wrong = schedule::check_stages(stages);
  }
  LOCKSTEP_CHECK(!wrong, fmt::format("the step program of {} is wrong at action {}: {}",
                                     wrong->program == 0 ? "this rank" : "another rank",
                                     wrong->violation.action, wrong->violation.reason));
  return {schedule::stage_of(specs.front()), std::move(programs.front())};
}

}  // namespace lockstep::train
