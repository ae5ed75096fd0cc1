// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/mesh/lanes.h"
#include "lockstep/model/block.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/gradient_sum.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// How a step is cut; the same on all ranks.
struct StepPlan {
  LaneOwnership lanes;    // of the data-parallel ranks
  int micro_batches = 1;  // of each lane
  int recompute_every = 0;
  SumOptions sum = {};
  plan::PipelinePlan pipeline = {};  // ignored when the pipeline has one stage
  std::vector<std::int64_t> hidden =
      {};  // what blocks hand on: its sizes for one micro-batch; for a pipeline
};

// What a rank does in a step.
struct StepProgram {
  schedule::Stage stage;
  schedule::StepProgram program;
};

// Proved together with those of the ranks that it works with; InternalError if one is refused.
StepProgram proved_program(const model::Model& model, const Holding& holding, const StepPlan& plan);

}  // namespace lockstep::train
