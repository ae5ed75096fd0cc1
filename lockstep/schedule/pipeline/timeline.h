// SPDX-License-Identifier: Apache-2.0
//
// When a pipeline computes what, under a simple model of its cost: what the formulas of docs/algorithms.md
// are about, and what `lockstep schedule show` draws.
#pragma once

#include <vector>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

// Times in any one unit; each is that of one chunk and one micro-batch. `link` passes between the end of a
// pass and the moment another rank has what it made; links carry any number of messages at a time.
struct PipelineCosts {
  double forward = 1;
  double backward = 2;  // whole
  double backward_input = 1;
  double backward_weight = 1;
  double link = 0;

  double of(Pass pass) const;
};

struct Timeline {
  struct Span {
    double begin = 0;
    double end = 0;
  };
  std::vector<std::vector<Span>> spans;  // by rank and entry
  double makespan = 0;                   // from 0, when the first pass begins, to the end of the last
  // The share of (ranks x makespan) in which ranks compute nothing:
  //   bubble = 1 - (sum of the times of all passes) / (stages x makespan)
  double bubble = 0;
  // The part of it that lies between the first and the last pass of a rank. What is left is the time before
  // its first and after its last pass.
  double inner_bubble = 0;
};

// Every pass begins as early as the order of its rank and its input allow. The pipeline must be one that
// check_pipeline() accepts, and the costs >= 0, not all of them 0.
Timeline time_pipeline(const Pipeline& pipeline, const PipelineCosts& costs = {});

// The most activations that a program keeps at a time: each from the begin of its forward pass to the end of
// the pass that adds its weight gradient. Counts those of chunks; a stage with v chunks keeps v for what is
// one with a single chunk.
int peak_live_activations(const PipelineProgram& program);

}  // namespace lockstep::schedule
