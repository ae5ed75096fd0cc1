// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/step_memory.h"

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/plan/block_memory.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/schedule/check/step.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"

namespace lockstep::plan {
namespace {

// What the rank has to do with of the whole.
struct Share {
  Coordinates place;
  int sharers = 1;  // of the update
  PipelinePlan pipeline;

  bool has_part(int part) const { return pipeline.placement.holder_of(part).rank == place.pipeline; }
  bool has_head() const { return has_part(pipeline.placement.parts() - 1); }
};

Share share_of(const spec::RunSpec& run, int world, Rank rank) {
  const Mesh mesh = mesh_of(run, world);
  return {.place = mesh.coordinates_of(rank),
          .sharers = run.parallelism.zero_stage > 0 ? mesh.size(Axis::data) : 1,
          .pipeline = read_pipeline_plan(run, world)};
}

bool is_tied(const spec::Model& model) {
  return model.tied_embeddings && model.name != spec::ModelFamily::mlp;
}

// Buckets do not change what is kept: one serves for all.
schedule::StepCost cost_of_step(const spec::RunSpec& run, int world, const Share& share) {
  const spec::Workload workload = spec::workload_of(run, world);
  const LaneOwnership lanes = first_ownership(run, world);
  const auto owner = static_cast<std::size_t>(share.place.data);
  schedule::StepSpec step = {
      .first_lane = lanes.first_lane[owner],
      .end_lane = lanes.first_lane[owner + 1],
      .micro_batches = static_cast<int>(workload.micro_batches_per_lane),
      .recompute_every = static_cast<int>(spec::recompute_stride(run.parallelism).value_or(0)),
      .tied = is_tied(run.model),
      .block_memory = block_memory(run.model, run.training)};
  step.blocks = static_cast<int>(step.block_memory.size());
  if (run.parallelism.pipeline > 1) {
    step.stage = stage_of(share.pipeline, share.place.pipeline,
                          (step.end_lane - step.first_lane) * step.micro_batches);
    step.bucket_blocks = {step.stage->chunks.front().first_block};
  }
  const schedule::StepCheck check = schedule::check_step(step, schedule::make_step(step));
  LOCKSTEP_CHECK(!check.violation, check.violation->reason);
  return check.cost;
}

struct Parameters {
  std::uint64_t updated = 0;
  std::uint64_t held = 0;  // also those of a head that another stage updates
};

Parameters parameters_of(const spec::RunSpec& run, const Share& share) {
  const std::vector<std::int64_t> counts = spec::block_parameter_counts(run.model);
  Parameters parameters;
  for (const schedule::Chunk& chunk : chunks_of(share.pipeline, share.place.pipeline)) {
    for (int block = chunk.first_block; block < chunk.end_block; ++block) {
      parameters.updated += static_cast<std::uint64_t>(counts[static_cast<std::size_t>(block)]);
    }
  }
  if (share.has_head()) parameters.updated += static_cast<std::uint64_t>(counts.back());
  parameters.held = parameters.updated;
  const bool borrows = is_tied(run.model) && share.has_head() && !share.has_part(0);
  if (borrows) parameters.held += static_cast<std::uint64_t>(run.model.vocab_size * run.model.width);
  return parameters;
}

std::uint64_t optimizer_bytes(const spec::RunSpec& run) {
  const std::uint64_t moments = run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1;
  const std::uint64_t master = run.training.dtype == DType::fp32 ? 0 : 1;
  return (master + moments) * sizeof(float);
}

}  // namespace

StepMemory step_memory(const spec::RunSpec& run, int world, Rank rank) {
  const Share share = share_of(run, world, rank);
  const schedule::StepCost cost = cost_of_step(run, world, share);
  const Parameters parameters = parameters_of(run, share);
  const auto sharers = static_cast<std::uint64_t>(share.sharers);
  const bool loses = cost.kept_passes > 0 && share.has_head();
  return {.weights = parameters.held * size_of(run.training.dtype),
          .optimizer = (parameters.updated + sharers - 1) / sharers * optimizer_bytes(run),
          .gradients = static_cast<std::uint64_t>(cost.slots) * parameters.held * sizeof(float),
          .activations = cost.pass_bytes + (loses ? head_memory(run.model, run.training) : 0)};
}

}  // namespace lockstep::plan
