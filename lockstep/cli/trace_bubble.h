// SPDX-License-Identifier: Apache-2.0
//
// How long the stages of a pipeline idled in a run, from its trace.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::cli {

// A pass in a trace.
struct TracedPass {
  std::int64_t step = 0;
  Rank rank = 0;
  Rank stage = 0;
  int part = 0;
  schedule::PipelineEntry entry;
  double begin_us = 0;
  double end_us = 0;
};

// Of some events, each in a line of its own, those that are passes. DataError, with `file`, for what no trace
// of lockstep has.
std::vector<TracedPass> passes_in(std::string_view events, std::string_view file);

struct TraceBubble {
  struct Stage {
    std::array<double, schedule::kPasses.size()> mean_us{};  // by Pass; 0: it has none of these
    double busy = 0;                                         // the share of time in which it computes
  };
  std::vector<Stage> stages = {};
  int micro_batches = 0;  // of a pipeline and step
  int steps = 0;          // that were counted
  // As Timeline::bubble, over all steps and pipelines of the run: what it was, and what the schedule has when
  // passes take the times that `lockstep schedule show` assumes.
  double measured = 0;
  double predicted = 0;
};

// The first step, which also makes ready, counts only when there is no other; steps that lack passes do not.
// UsageError, with `file`, when there is no whole step of all stages.
TraceBubble bubble_of(std::span<const TracedPass> passes, std::string_view file);

// A table of stages, and the bubble.
std::string to_text(const TraceBubble& bubble);
std::string to_json(const TraceBubble& bubble);

}  // namespace lockstep::cli
