// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/schedule_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;
using schedule::PlacementShape;

std::string counted(int count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

std::string_view shape_text(const schedule::Placement& placement) {
  return placement.shape == PlacementShape::v_shape ? "v" : "round-robin";
}

Json passes_json(const TimedPipeline& timed, std::size_t rank) {
  Json passes = Json::array();
  for (std::size_t i = 0; i < timed.pipeline.programs[rank].size(); ++i) {
    const schedule::PipelineEntry& entry = timed.pipeline.programs[rank][i];
    const schedule::Timeline::Span span = timed.timeline.spans[rank][i];
    passes.push_back({{"pass", std::string(1, letter_of(entry.pass))},
                      {"micro_batch", entry.micro_batch},
                      {"chunk", entry.chunk},
                      {"begin", span.begin},
                      {"end", span.end}});
  }
  return passes;
}

}  // namespace

std::string bubble_text(const ScheduleReport& report) {
  const schedule::Timeline& timeline = report.timed.timeline;
  return fmt::format("makespan {:.6g}, bubble {:.1f} % ({:.1f} % between a stage's first and last pass)",
                     timeline.makespan, 100 * timeline.bubble, 100 * timeline.inner_bubble);
}

std::string memory_text(const ScheduleReport& report) {
  const int most = *std::max_element(report.peak_live.begin(), report.peak_live.end());
  std::string text = fmt::format("activations kept at most: {} by stage", fmt::join(report.peak_live, " "));
  const int chunks = report.timed.pipeline.placement.chunks;
  if (chunks == 1) return text;
  return text + fmt::format(", each of one of {} chunks; {} are as much as {:.4g} of a whole stage", chunks,
                            most, static_cast<double>(most) / chunks);
}

std::string report_text(const ScheduleReport& report, const GanttStyle& style) {
  const auto& [placement, micro_batches, programs] = report.timed.pipeline;
  const schedule::PipelineCosts& costs = report.costs;
  std::string text = fmt::format("{}: {}, {}", report.title, counted(placement.stages, "stage", "stages"),
                                 counted(micro_batches, "micro-batch", "micro-batches"));
  if (placement.chunks > 1) {
    text += fmt::format(", {} chunks per stage ({})", placement.chunks, shape_text(placement));
  }
  text += "\n" + draw_gantt(report.timed, style);
  text += "F forward, B backward, I and W its halves for input and weight gradients; ";
  text += fmt::format("F3.1 is micro-batch 3 on chunk 1\n{}\n{}\n", bubble_text(report), memory_text(report));
  return text + fmt::format("times: F {:.6g}, B {:.6g}, I {:.6g}, W {:.6g}, from stage to stage {:.6g}\n",
                            costs.forward, costs.backward, costs.backward_input, costs.backward_weight,
                            costs.link);
}

std::string report_json(const ScheduleReport& report) {
  const auto& [placement, micro_batches, programs] = report.timed.pipeline;
  Json stages = Json::array();
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    stages.push_back(
        {{"peak_live_activations", report.peak_live[rank]}, {"passes", passes_json(report.timed, rank)}});
  }
  const Json json = {{"schedule", report.title},
                     {"stages", placement.stages},
                     {"micro_batches", micro_batches},
                     {"chunks_per_stage", placement.chunks},
                     {"placement", shape_text(placement)},
                     {"costs",
                      {{"forward", report.costs.forward},
                       {"backward", report.costs.backward},
                       {"backward_input", report.costs.backward_input},
                       {"backward_weight", report.costs.backward_weight},
                       {"link", report.costs.link}}},
                     {"makespan", report.timed.timeline.makespan},
                     {"bubble", report.timed.timeline.bubble},
                     {"inner_bubble", report.timed.timeline.inner_bubble},
                     {"programs", stages}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
