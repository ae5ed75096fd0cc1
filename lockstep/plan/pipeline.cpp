// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/schedule/check/pipeline.h"
#include "lockstep/schedule/pipeline/csv.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"

namespace lockstep::plan {
namespace {

schedule::PipelineSpec spec_of(const spec::Parallelism& parallelism, int micro_batches) {
  return {.schedule = schedule::parse_pipeline_schedule(parallelism.schedule),
          .stages = static_cast<int>(parallelism.pipeline),
          .micro_batches = micro_batches,
          .virtual_stages = static_cast<int>(parallelism.virtual_stages)};
}

schedule::Pipeline read_schedule(const spec::Parallelism& parallelism) {
  std::error_code ignored;
  if (std::filesystem::status(parallelism.schedule, ignored).type() ==
      std::filesystem::file_type::not_found) {
    throw UsageError(
        fmt::format("parallelism.schedule names the file {}, which is not there; `lockstep schedule show "
                    "--csv` writes one",
                    parallelism.schedule));
  }
  const MappedFile file(parallelism.schedule);
  schedule::Pipeline pipeline = schedule::parse_pipeline_csv(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, parallelism.schedule);
  if (const auto check = schedule::check_pipeline(pipeline); check.violation) {
    throw UsageError(fmt::format("{}: {}", parallelism.schedule, to_string(*check.violation, pipeline)));
  }
  if (pipeline.placement.stages != parallelism.pipeline) {
    throw UsageError(fmt::format("{} is a schedule of {} stages, but parallelism.pipeline = {}",
                                 parallelism.schedule, pipeline.placement.stages, parallelism.pipeline));
  }
  return pipeline;
}

// By block; what the head costs is the last one's.
std::vector<double> block_costs(const spec::RunSpec& run) {
  std::vector<double> costs = spec::block_flops_per_token(run.model, run.training.seq_len);
  const double head = costs.back();
  costs.pop_back();
  costs.back() += head;
  return costs;
}

std::vector<schedule::Chunk> given_parts(const std::vector<double>& counts, std::size_t blocks, int parts) {
  std::vector<schedule::Chunk> chunks;
  int next = 0;
  for (const double count : counts) {
    chunks.push_back({next, next + static_cast<int>(count)});
    next = chunks.back().end_block;
  }
  if (chunks.size() != static_cast<std::size_t>(parts) || next != static_cast<int>(blocks)) {
    throw UsageError(
        fmt::format("parallelism.part_blocks gives {} blocks to {} parts, but the model has {} blocks "
                    "(embedding and last "
                    "norm are two of them) and the pipeline {} parts",
                    next, chunks.size(), blocks, parts));
  }
  return chunks;
}

// What the pipeline can have of a model with so many blocks, fewer than its parts: "3 virtual stages, or 2
// stages".
std::string most_parts(const schedule::Placement& placement, std::size_t blocks, bool is_interleaved) {
  const std::size_t stages = blocks / static_cast<std::size_t>(placement.chunks);
  const std::size_t virtual_stages = blocks / static_cast<std::size_t>(placement.stages);
  if (!is_interleaved) return counted(stages, "stage");
  if (virtual_stages == 0) return fmt::format("{} with 1 virtual stage", counted(blocks, "stage"));
  const std::string fewer = counted(virtual_stages, "virtual stage");
  return stages < 2 ? fewer : fmt::format("{}, or {}", fewer, counted(stages, "stage"));
}

// For as many lanes as a worker has, or may come to have.
void require_programs(const PipelinePlan& plan, const spec::RunSpec& run, int world) {
  const spec::Workload workload = spec::workload_of(run, world);
  const LaneOwnership lanes = first_ownership(run, world);
  const bool lanes_move = run.parallelism.rebalance_freq > 0 && workload.data_parallel > 1;
  if (plan.given && lanes_move) {
    throw UsageError(fmt::format(
        "{} is a schedule of {} micro-batches, but with parallelism.rebalance_freq = {} the workers' numbers "
        "of them change; set it to 0, or choose a schedule by its name",
        plan.schedule, plan.given->micro_batches, run.parallelism.rebalance_freq));
  }
  std::set<int> counts;
  for (Rank rank = 0; rank < lanes.world(); ++rank) counts.insert(lanes.count_of(rank));
  if (lanes_move) counts.insert(lanes.lanes());
  for (const int count : counts) {
    pipeline_of(plan, count * static_cast<int>(workload.micro_batches_per_lane));
  }
}

}  // namespace

Mesh mesh_of(const spec::RunSpec& run, int world) {
  return {world, spec::mesh_shape(run.parallelism)};
}

PipelinePlan read_pipeline_plan(const spec::RunSpec& run, int world) {
  const spec::Parallelism& parallelism = run.parallelism;
  const std::vector<double> costs = block_costs(run);
  PipelinePlan plan = {.placement = {}, .parts = {}, .schedule = parallelism.schedule};
  const bool is_file = parallelism.schedule.ends_with(".csv");
  if (parallelism.pipeline == 1) {
    if (!is_file) schedule::parse_pipeline_schedule(parallelism.schedule);
    plan.parts = {{0, static_cast<int>(costs.size())}};
    return plan;
  }
  if (is_file) {
    plan.given = read_schedule(parallelism);
    plan.placement = plan.given->placement;
  } else {
    plan.placement = schedule::placement_of(spec_of(parallelism, 1));
  }
  const int parts = plan.placement.parts();
  if (static_cast<std::size_t>(parts) > costs.size()) {
    throw UsageError(fmt::format(
        "parallelism.pipeline = {} with {} makes {} parts, but the model has only {} blocks (embedding and "
        "last norm are two of them) to share out; use at most {}",
        parallelism.pipeline, parallelism.schedule, parts, costs.size(),
        most_parts(plan.placement, costs.size(), parallelism.schedule == "interleaved")));
  }
  plan.parts = parallelism.part_blocks.empty() ? cut_by_cost(costs, parts)
                                               : given_parts(parallelism.part_blocks, costs.size(), parts);
  require_programs(plan, run, world);
  return plan;
}

// The cheapest way to cut the first `end` blocks into so many parts, by its most expensive part, follows from
// those with one part less. As the last part begins later, it costs less and those before it cost more: the
// best begin is where the two meet, and it only moves up with `end`.
std::vector<schedule::Chunk> cut_by_cost(std::span<const double> costs, int parts) {
  const std::size_t blocks = costs.size();
  LOCKSTEP_CHECK(parts >= 1 && static_cast<std::size_t>(parts) <= blocks);
  std::vector<double> sums = {0.0};
  for (const double cost : costs) sums.push_back(sums.back() + cost);
  std::vector<double> most = sums;  // of the parts so far, by end
  std::vector<std::vector<int>> begins(static_cast<std::size_t>(parts), std::vector<int>(blocks + 1, 0));
  for (std::size_t part = 1; part < begins.size(); ++part) {
    std::vector<double> next(blocks + 1, std::numeric_limits<double>::infinity());
    std::size_t begin = part;
    for (std::size_t end = part + 1; end <= blocks; ++end) {
      const auto cost = [&](std::size_t at) { return std::max(most[at], sums[end] - sums[at]); };
      while (begin + 1 < end && most[begin] < sums[end] - sums[begin]) ++begin;
      while (begin > part && cost(begin - 1) <= cost(begin)) --begin;
      next[end] = cost(begin);
      begins[part][end] = static_cast<int>(begin);
    }
    most = std::move(next);
  }
  std::vector<schedule::Chunk> chunks(static_cast<std::size_t>(parts));
  auto end = static_cast<int>(blocks);
  for (std::size_t part = chunks.size(); part-- > 0;) {
    chunks[part] = {begins[part][static_cast<std::size_t>(end)], end};
    end = chunks[part].first_block;
  }
  return chunks;
}

std::vector<schedule::Chunk> chunks_of(const PipelinePlan& plan, Rank stage) {
  std::vector<schedule::Chunk> chunks;
  for (int chunk = 0; chunk < plan.placement.chunks; ++chunk) {
    chunks.push_back(plan.parts[static_cast<std::size_t>(plan.placement.part_of(stage, chunk))]);
  }
  return chunks;
}

schedule::Pipeline pipeline_of(const PipelinePlan& plan, int micro_batches) {
  if (micro_batches == 0) {
    return {plan.placement, 0,
            std::vector<schedule::PipelineProgram>(static_cast<std::size_t>(plan.placement.stages))};
  }
  if (!plan.given) {
    return schedule::make_pipeline({.schedule = schedule::parse_pipeline_schedule(plan.schedule),
                                    .stages = plan.placement.stages,
                                    .micro_batches = micro_batches,
                                    .virtual_stages = plan.placement.chunks});
  }
  if (plan.given->micro_batches != micro_batches) {
    throw UsageError(
        fmt::format("{} is a schedule of {} micro-batches, but a worker has {} in a step (its lanes x "
                    "training.global_batch_size / (lanes x training.micro_batch_size))",
                    plan.schedule, plan.given->micro_batches, micro_batches));
  }
  return *plan.given;
}

schedule::Stage stage_of(const PipelinePlan& plan, Rank stage, int micro_batches) {
  return {.placement = plan.placement,
          .rank = stage,
          .chunks = chunks_of(plan, stage),
          .passes = pipeline_of(plan, micro_batches).programs[static_cast<std::size_t>(stage)]};
}

}  // namespace lockstep::plan
