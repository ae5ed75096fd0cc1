// SPDX-License-Identifier: Apache-2.0
//
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters" (2021). Micro-batches go
// through the chunks of a stage in *groups* of as many as there are stages: the whole group through chunk 0,
// then, when its first one is back from the last stage, through chunk 1, and so on. Backward is the same with
// the chunks in reverse.
#include <algorithm>

#include "lockstep/schedule/pipeline/generators.h"

namespace lockstep::schedule {
namespace {

// The n-th pass in one direction, when all groups are full.
PipelineEntry pass_number(const PipelineSpec& spec, Pass pass, int n) {
  const int per_group = spec.stages * spec.virtual_stages;
  const int chunk = n % per_group / spec.stages;
  return {.pass = pass,
          .micro_batch = n / per_group * spec.stages + n % spec.stages,
          .chunk = pass == Pass::forward ? chunk : spec.virtual_stages - 1 - chunk};
}

// All chunks but the last, and then what lets the gradients come back. Twice that of 1f1b, so that a message
// has the time of a pass to arrive; with a single chunk it is 1f1b.
int warm_up(const PipelineSpec& spec, Rank rank) {
  const int stages_after = spec.stages - 1 - rank;
  if (spec.virtual_stages == 1) return stages_after;
  return (spec.virtual_stages - 1) * spec.stages + 2 * stages_after;
}

}  // namespace

// A last group that is not full is filled up, and what does not exist is left out: leaving a micro-batch out
// of a program that works takes no other pass anything that it waits for.
PipelineProgram interleaved_program(const PipelineSpec& spec, Rank rank) {
  const int groups = (spec.micro_batches + spec.stages - 1) / spec.stages;
  const int passes = groups * spec.stages * spec.virtual_stages;
  const int ahead = std::min(warm_up(spec, rank), passes);
  PipelineProgram program;
  const auto add = [&](Pass pass, int n) {
    const PipelineEntry entry = pass_number(spec, pass, n);
    if (entry.micro_batch < spec.micro_batches) program.push_back(entry);
  };
  for (int n = 0; n < ahead; ++n) add(Pass::forward, n);
  for (int n = 0; n < passes; ++n) {
    if (n + ahead < passes) add(Pass::forward, n + ahead);
    add(Pass::backward, n);
  }
  return program;
}

}  // namespace lockstep::schedule
