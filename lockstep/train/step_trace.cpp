// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_trace.h"

#include <utility>

#include <fmt/format.h>

#include "lockstep/schedule/pipeline/pass_name.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/gather_trace.h"
#include "lockstep/train/phases.h"

namespace lockstep::train {
namespace {

constexpr std::uint64_t kMostEvents = 1'000'000;  // of a rank
enum Thread : int { kPasses = 0, kActions = 1 };

std::string_view category_of(schedule::Act act) {
  return phase_of(act) == Phase::communication ? "communication" : "compute";
}

std::string label_of(const schedule::Action& action) {
  std::string label(schedule::name_of(action.act));
  if (action.block >= 0) label += fmt::format(" block {}", action.block);
  if (action.bucket >= 0) label += fmt::format(" bucket {}", action.bucket);
  if (action.lane >= 0) label += fmt::format(", lane {}", action.lane);
  if (action.micro_batch >= 0) label += fmt::format(", micro-batch {}", action.micro_batch);
  return label;
}

std::string label_of(const schedule::PipelineEntry& entry, int chunks) {
  std::string label = fmt::format("{} micro-batch {}", schedule::name_of(entry.pass), entry.micro_batch);
  if (chunks > 1) label += fmt::format(", chunk {}", entry.chunk);
  return label;
}

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// Ranks follow each other stage by stage.
metrics::TraceProcess process_of(const Groups& groups, const CommonInstant& start) {
  const Rank rank = groups.world.rank();
  metrics::TraceProcess process = {
      .number = rank, .name = fmt::format("rank {}", rank), .threads = {"passes", "actions"}};
  if (groups.pipeline.size() > 1) {
    process.name = fmt::format("stage {}, {}", groups.pipeline.rank(), process.name);
  }
  if (start.error.count() > 0) {
    process.label = fmt::format("another host: its clock began within {:.1f} us of that of rank 0",
                                microseconds(start.error));
  }
  return process;
}

}  // namespace

StepTrace::StepTrace(const Options& options, const Groups& groups)
    : world_(groups.world),
      whole_(options.folder / fmt::format("from_step_{}.json", options.first_step)),
      own_(options.folder / fmt::format("from_step_{}.rank_{}.json", options.first_step, world_.rank())),
      start_(common_instant(world_)) {
  together(world_, [&] { trace_.emplace(own_, process_of(groups, start_), kMostEvents); });
}

void StepTrace::begin_step(std::int64_t step, PassesOfStep passes) {
  step_.emplace(Step{.number = step, .passes = PassSpans(std::move(passes))});
}

void StepTrace::add(const schedule::Action& action, Clock::time_point began, Clock::time_point ended) {
  trace_->add({.name = label_of(action),
               .category = std::string(category_of(action.act)),
               .begin_us = microseconds(began - start_.here),
               .duration_us = microseconds(ended - began),
               .thread = kActions});
  if (const auto pass = step_->passes.add(action, began, ended)) add_pass(*pass);
}

void StepTrace::add_pass(const PassSpan& span) {
  const schedule::PipelineEntry& entry = span.entry;
  const schedule::Stage& stage = step_->passes.stage();
  trace_->add({.name = label_of(entry, stage.placement.chunks),
               .category = "pass",
               .begin_us = microseconds(span.began - start_.here),
               .duration_us = microseconds(span.ended - span.began),
               .thread = kPasses,
               .details = {{"step", step_->number},
                           {"micro_batch", entry.micro_batch},
                           {"chunk", entry.chunk},
                           {"stage", stage.rank},
                           {"part", stage.placement.part_of(stage.rank, entry.chunk)}}});
}

void StepTrace::end_step() {
  if (const auto pass = step_->passes.finish()) add_pass(*pass);
  step_.reset();
  trace_->flush();
}

std::optional<std::filesystem::path> StepTrace::gather() {
  trace_.reset();
  return gather_trace(own_, whole_, world_) ? std::optional(whole_) : std::nullopt;
}

}  // namespace lockstep::train
