// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/step_memory.h"

#include <algorithm>

#include "lockstep/base/dtype.h"
#include "lockstep/base/error.h"
#include "lockstep/mesh/host_grid.h"
#include "lockstep/mesh/mirrors.h"
#include "lockstep/plan/block_memory.h"
#include "lockstep/plan/buckets.h"
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
  int sharers = 1;
  int zero_stage = 0;
  bool copies_on_hosts = false;
  PipelinePlan pipeline;
  std::vector<std::int64_t> parameters;  // by block; a head of its own is with the last
  std::int64_t lanes = 1;                // tensor lanes of the rank
  spec::Model lane;                      // what each of them has

  bool has_part(int part) const { return pipeline.placement.holder_of(part).rank == place.pipeline; }
  bool has_head() const { return has_part(pipeline.placement.parts() - 1); }
};

Share share_of(const spec::RunSpec& run, int world, Rank rank, std::span<const int> host_of) {
  const Mesh mesh = mesh_of(run, world);
  const int sharers = sharers_of(run, world, host_of);
  Share share = {.place = mesh.coordinates_of(rank),
                 .sharers = sharers,
                 .zero_stage = sharers > 1 ? static_cast<int>(run.parallelism.zero_stage) : 0,
                 .copies_on_hosts = sharers > 1 && sharers < mesh.size(Axis::data),
                 .pipeline = read_pipeline_plan(run, world),
                 .parameters = {},
                 .lanes = spec::tensor_lanes(run.parallelism) / run.parallelism.tensor,
                 .lane = run.model};
  if (const std::int64_t lanes = spec::tensor_lanes(run.parallelism); lanes > 1) {
    share.lane = spec::lane_of(run.model, lanes);
  }
  share.parameters = spec::block_parameter_counts(share.lane);
  for (std::int64_t& count : share.parameters) count *= share.lanes;
  const std::int64_t head = share.parameters.back();
  share.parameters.pop_back();
  share.parameters.back() += head;
  return share;
}

bool is_tied(const spec::Model& model) {
  return model.tied_embeddings && model.name != spec::ModelFamily::mlp;
}

// One bucket for each chunk, as runs have them that share out gradients.
void give_buckets(const spec::RunSpec& run, const Share& share, std::span<const schedule::Chunk> chunks,
                  schedule::StepSpec& step) {
  step.bucket_blocks.clear();
  std::vector<std::uint64_t> sizes;
  for (const schedule::Chunk& chunk : chunks) {
    std::uint64_t& elements = sizes.emplace_back(0);
    for (int block = chunk.first_block; block < chunk.end_block; ++block) {
      elements += static_cast<std::uint64_t>(share.parameters[static_cast<std::size_t>(block)]);
    }
    step.bucket_blocks.push_back(chunk.first_block);
  }
  for (const std::uint64_t size : sizes) {
    const std::uint64_t elements = room_for(size, sizes);
    step.bucket_memory.push_back(
        {.weights = elements * size_of(run.training.dtype), .gradients = elements * sizeof(float)});
  }
}

schedule::StepSpec step_of(const spec::RunSpec& run, int world, const Share& share) {
  const spec::Workload workload = spec::workload_of(run, world);
  const LaneOwnership lanes = first_ownership(run, world);
  const auto owner = static_cast<std::size_t>(share.place.data);
  schedule::StepSpec step = {
      .blocks = static_cast<int>(share.parameters.size()),
      .first_lane = lanes.first_lane[owner],
      .end_lane = lanes.first_lane[owner + 1],
      .micro_batches = static_cast<int>(workload.micro_batches_per_lane),
      .recompute_every = static_cast<int>(spec::recompute_stride(run.parallelism).value_or(0)),
      .shards_update = share.zero_stage >= 1,
      .shards_gradients = share.zero_stage >= 2,
      .shards_weights = share.zero_stage >= 3,
      .copies_on_hosts = share.zero_stage >= 1 && share.copies_on_hosts,
      .tied = is_tied(run.model),
      .sums_shared = spec::tensor_lanes(run.parallelism) > 1,
      .block_memory = block_memory(run)};
  const int micro_batches = (step.end_lane - step.first_lane) * step.micro_batches;
  if (run.parallelism.pipeline > 1) {
    step.stage = stage_of(share.pipeline, share.place.pipeline, micro_batches);
    // Others do not change what is kept: one serves for all.
    step.bucket_blocks = {step.stage->chunks.front().first_block};
  } else if (step.shards_gradients) {
    step.stage =
        schedule::breadth_first_stage(group_blocks(share.parameters, kBucketElements), micro_batches);
  }
  if (step.shards_gradients) give_buckets(run, share, step.stage->chunks, step);
  return step;
}

schedule::StepCost cost_of_step(const spec::RunSpec& run, int world, const Share& share) {
  const schedule::StepSpec step = step_of(run, world, share);
  const schedule::StepCheck check = schedule::check_step(step, schedule::make_step(step));
  LOCKSTEP_CHECK(!check.violation, check.violation->reason);
  return check.cost;
}

struct Parameters {
  std::uint64_t updated = 0;   // by the ranks that hold this part
  std::uint64_t borrowed = 0;  // those of a head that another stage updates
};

Parameters parameters_of(const spec::RunSpec& run, const Share& share) {
  Parameters parameters;
  for (const schedule::Chunk& chunk : chunks_of(share.pipeline, share.place.pipeline)) {
    for (int block = chunk.first_block; block < chunk.end_block; ++block) {
      parameters.updated += static_cast<std::uint64_t>(share.parameters[static_cast<std::size_t>(block)]);
    }
  }
  if (is_tied(run.model) && share.has_head() && !share.has_part(0)) {
    parameters.borrowed = static_cast<std::uint64_t>(share.lanes * share.lane.vocab_size * share.lane.width);
  }
  return parameters;
}

// Of the values in fp32 that the working ones do not have.
std::uint64_t master_bytes(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return sizeof(std::uint16_t);
    case DType::fp16:
      return sizeof(float);
    default:
      return 0;
  }
}

std::uint64_t moment_bytes(const spec::RunSpec& run) {
  return (run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1) * sizeof(float);
}

std::uint64_t optimizer_bytes(const spec::RunSpec& run) {
  return moment_bytes(run) + master_bytes(run.training.dtype);
}

// Only of a run that saves on its way: at its end the state is written from where it is. Ranks that hold the
// same write a part of it each, so that all of data-parallel ones together have one copy.
std::uint64_t checkpoint_memory(const spec::RunSpec& run, int world, std::uint64_t parameters) {
  if (!spec::saves_on_the_way(run) || run.zero.offload != spec::Offload::none) return 0;
  const auto writers = static_cast<std::uint64_t>(mesh_of(run, world).size(Axis::data));
  return (parameters + writers - 1) / writers * (sizeof(float) + moment_bytes(run));
}

// On disk all but a few buckets: one that is updated, the next, and those that are being written.
std::uint64_t optimizer_memory(const spec::RunSpec& run, const Share& share, std::uint64_t parameters) {
  const std::uint64_t all = parameters * optimizer_bytes(run);
  if (run.zero.offload == spec::Offload::none) return all;
  constexpr std::uint64_t kBuckets = 5;
  std::int64_t largest = kBucketElements;
  if (share.zero_stage >= 2) largest = std::max(largest, std::ranges::max(share.parameters));
  const auto sharers = static_cast<std::uint64_t>(share.zero_stage >= 1 ? share.sharers : 1);
  return std::min(all, kBuckets * static_cast<std::uint64_t>(largest) / sharers * optimizer_bytes(run));
}

// Shares of others of which the rank has copies.
std::uint64_t mirrored_shares(const Mesh& mesh, Rank rank, std::span<const int> host_of) {
  std::vector<int> hosts;
  for (const Rank other : mesh.group_of(rank, Axis::data)) {
    hosts.push_back(host_of.empty() ? 0 : host_of[static_cast<std::size_t>(other)]);
  }
  if (std::ranges::all_of(hosts, [&](int host) { return host == hosts.front(); })) return 0;
  const std::vector<Rank> mirrors = mirrors_by_rank(hosts);
  return static_cast<std::uint64_t>(std::ranges::count(mirrors, mesh.place_in_group(rank, Axis::data)));
}

std::uint64_t rounded_up(std::uint64_t elements, int sharers) {
  const auto parts = static_cast<std::uint64_t>(sharers);
  return (elements + parts - 1) / parts;
}

}  // namespace

int sharers_of(const spec::RunSpec& run, int world, std::span<const int> host_of) {
  const Mesh mesh = mesh_of(run, world);
  const bool is_shared_inside_hosts = run.parallelism.zero_scope == spec::ZeroScope::host && !host_of.empty();
  return is_shared_inside_hosts ? data_grid(mesh, host_of).ranks_per_host : mesh.size(Axis::data);
}

StepMemory step_memory(const spec::RunSpec& run, int world, Rank rank, std::span<const int> host_of) {
  const Share share = share_of(run, world, rank, host_of);
  const schedule::StepCost cost = cost_of_step(run, world, share);
  const auto [updated, borrowed] = parameters_of(run, share);
  const std::uint64_t own = rounded_up(updated, share.sharers);
  const auto slots = static_cast<std::uint64_t>(cost.slots);
  const bool loses = cost.kept_passes > 0 && share.has_head();
  return {.weights = (borrowed + (share.zero_stage >= 3 ? own : updated)) * size_of(run.training.dtype),
          .optimizer = optimizer_memory(run, share, share.zero_stage >= 1 ? own : updated),
          .gradients = (slots * borrowed + (share.zero_stage >= 2 ? own : slots * updated)) * sizeof(float),
          .activations = cost.pass_bytes + cost.bucket_bytes + (loses ? head_memory(run) : 0),
          .checkpoint = checkpoint_memory(run, world, updated)};
}

bool mirrors_shares(const spec::RunSpec& run) {
  return run.zero.offload == spec::Offload::none;
}

std::uint64_t mirror_memory(const spec::RunSpec& run, int world, Rank rank, std::span<const int> host_of) {
  const Share share = share_of(run, world, rank, host_of);
  if (!mirrors_shares(run) || share.zero_stage == 0 || share.copies_on_hosts) return 0;
  const std::uint64_t elements = rounded_up(parameters_of(run, share).updated, share.sharers);
  const std::uint64_t value_and_gradient = 2 * sizeof(float);
  return mirrored_shares(mesh_of(run, world), rank, host_of) * elements *
         (value_and_gradient + moment_bytes(run));
}

}  // namespace lockstep::plan
