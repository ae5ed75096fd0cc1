// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/pipeline.h"

#include <array>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/suggest.h"
#include "lockstep/schedule/pipeline/generators.h"

namespace lockstep::schedule {
namespace {

struct Row {
  PipelineSchedule schedule;
  std::string_view name;
  PipelineProgram (*generate)(const PipelineSpec&, Rank);
};

constexpr std::array kRows = {
    Row{PipelineSchedule::naive, "naive", naive_program},
    Row{PipelineSchedule::gpipe, "gpipe", gpipe_program},
    Row{PipelineSchedule::one_f_one_b, "1f1b", one_f_one_b_program},
    Row{PipelineSchedule::interleaved, "interleaved", interleaved_program},
    Row{PipelineSchedule::zbh1, "zbh1", zbh1_program},
    Row{PipelineSchedule::zbv, "zbv", zbv_program},
};

const Row& row_of(PipelineSchedule schedule) {
  for (const Row& row : kRows) {
    if (row.schedule == schedule) return row;
  }
  check_failed("schedule", "no such pipeline schedule");
}

void check_range(std::string_view what, int value, int most) {
  if (value >= 1 && value <= most) return;
  throw UsageError(fmt::format("a pipeline with {} {}: expected from 1 to {}", value, what, most));
}

void check_chunks(const PipelineSpec& spec) {
  if (spec.schedule == PipelineSchedule::interleaved || spec.virtual_stages == 1) return;
  if (spec.schedule != PipelineSchedule::zbv) {
    throw UsageError(fmt::format("schedule {} has one virtual stage per stage, not {}: choose interleaved",
                                 name_of(spec.schedule), spec.virtual_stages));
  }
  if (spec.virtual_stages != 2) {
    throw UsageError(fmt::format("schedule zbv has 2 virtual stages per stage, not {}", spec.virtual_stages));
  }
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) {
  return row_of(schedule).name;
}

PipelineSchedule parse_pipeline_schedule(std::string_view name) {
  std::vector<std::string> known;
  for (const Row& row : kRows) {
    if (row.name == name) return row.schedule;
    known.emplace_back(row.name);
  }
  refuse_name("pipeline schedule", name, known);
}

char letter_of(Pass pass) {
  constexpr std::string_view kLetters = "FBIW";
  return kLetters[static_cast<std::size_t>(pass)];
}

std::string to_string(const PipelineEntry& entry) {
  const std::string text = fmt::format("{}{}", letter_of(entry.pass), entry.micro_batch);
  return entry.chunk == 0 ? text : fmt::format("{}.{}", text, entry.chunk);
}

Placement placement_of(const PipelineSpec& spec) {
  check_range("stages", spec.stages, kMaxPipelineStages);
  check_range("micro-batches", spec.micro_batches, kMaxMicroBatches);
  check_range("virtual stages", spec.virtual_stages, kMaxVirtualStages);
  check_chunks(spec);
  Placement placement{.stages = spec.stages, .chunks = spec.virtual_stages};
  if (spec.schedule == PipelineSchedule::zbv) {
    placement.chunks = 2;
    placement.shape = PlacementShape::v_shape;
  }
  const std::int64_t passes = std::int64_t{spec.micro_batches} * placement.parts();
  if (passes > kMaxPipelinePasses) {
    throw UsageError(fmt::format("a pipeline with {} forward passes over all stages: at most {} are possible",
                                 passes, kMaxPipelinePasses));
  }
  return placement;
}

Pipeline make_pipeline(const PipelineSpec& spec) {
  Pipeline pipeline{.placement = placement_of(spec), .micro_batches = spec.micro_batches, .programs = {}};
  for (Rank rank = 0; rank < spec.stages; ++rank) {
    pipeline.programs.push_back(row_of(spec.schedule).generate(spec, rank));
  }
  return pipeline;
}

}  // namespace lockstep::schedule
