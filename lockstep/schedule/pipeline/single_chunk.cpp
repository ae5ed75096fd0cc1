// SPDX-License-Identifier: Apache-2.0
//
// The schedules with one chunk per stage.
#include <algorithm>

#include "lockstep/schedule/pipeline/generators.h"

namespace lockstep::schedule {
namespace {

// How many forward passes a stage does before its first pair of forward and backward: as many as there are
// stages after it, so that the gradient of the first is back when they are done.
int warm_up(const PipelineSpec& spec, Rank rank) {
  return std::min(spec.stages - 1 - rank, spec.micro_batches);
}

}  // namespace

PipelineProgram naive_program(const PipelineSpec& spec, Rank /*rank*/) {
  PipelineProgram program;
  for (int i = 0; i < spec.micro_batches; ++i) {
    program.push_back({Pass::forward, i});
    program.push_back({Pass::backward, i});
  }
  return program;
}

PipelineProgram gpipe_program(const PipelineSpec& spec, Rank /*rank*/) {
  PipelineProgram program;
  for (int i = 0; i < spec.micro_batches; ++i) program.push_back({Pass::forward, i});
  for (int i = 0; i < spec.micro_batches; ++i) program.push_back({Pass::backward, i});
  return program;
}

PipelineProgram one_f_one_b_program(const PipelineSpec& spec, Rank rank) {
  const int ahead = warm_up(spec, rank);
  PipelineProgram program;
  for (int i = 0; i < ahead; ++i) program.push_back({Pass::forward, i});
  for (int i = 0; i < spec.micro_batches; ++i) {
    if (i + ahead < spec.micro_batches) program.push_back({Pass::forward, i + ahead});
    program.push_back({Pass::backward, i});
  }
  return program;
}

// Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism" (2023). A stage r keeps r fewer activations for the
// stages after it than stage 0 does, and may therefore let r weight gradients wait: input gradients leave it
// that much earlier, and the waiting ones fill the end.
PipelineProgram zbh1_program(const PipelineSpec& spec, Rank rank) {
  const int ahead = warm_up(spec, rank);
  PipelineProgram program;
  for (int i = 0; i < ahead; ++i) program.push_back({Pass::forward, i});
  for (int i = 0; i < spec.micro_batches; ++i) {
    if (i + ahead < spec.micro_batches) program.push_back({Pass::forward, i + ahead});
    program.push_back({Pass::backward_input, i});
    if (i >= rank) program.push_back({Pass::backward_weight, i - rank});
  }
  for (int i = std::max(0, spec.micro_batches - rank); i < spec.micro_batches; ++i) {
    program.push_back({Pass::backward_weight, i});
  }
  return program;
}

}  // namespace lockstep::schedule
