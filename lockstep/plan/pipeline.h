// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/mesh/mesh.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::plan {

// Where each worker of the run stands. UsageError when the sizes of the axes do not fit `world`.
Mesh mesh_of(const spec::RunSpec& run, int world);

// How a run is cut into the stages of a pipeline; of one stage, the whole model, for a run without.
struct PipelinePlan {
  schedule::Placement placement;
  std::vector<schedule::Chunk> parts;            // by part: its blocks
  std::string schedule;                          // its name
  std::optional<schedule::Pipeline> given = {};  // by a file, instead
};

// From parallelism.schedule and the file that it may name. UsageError for what is no schedule, for one that
// the checker refuses or that is not of the run's stages and micro-batches, also when lanes have moved, and
// when there are more parts than blocks.
PipelinePlan read_pipeline_plan(const spec::RunSpec& run, int world);

// Contiguous parts, none empty, so that the most expensive one is as cheap as can be; of those, early parts
// are as small as can be. `costs` are by block, at least as many as parts.
std::vector<schedule::Chunk> cut_by_cost(std::span<const double> costs, int parts);

// The blocks of a stage, chunk by chunk.
std::vector<schedule::Chunk> chunks_of(const PipelinePlan& plan, Rank stage);

// The programs of all stages for so many micro-batches; empty ones for none. UsageError when a given schedule
// is for another number.
schedule::Pipeline pipeline_of(const PipelinePlan& plan, int micro_batches);

// What the stage computes in a step with so many micro-batches.
schedule::Stage stage_of(const PipelinePlan& plan, Rank stage, int micro_batches);

}  // namespace lockstep::plan
