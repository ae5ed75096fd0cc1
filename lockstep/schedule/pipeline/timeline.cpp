// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/timeline.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/schedule/pipeline/play.h"

namespace lockstep::schedule {
namespace {

void add_bubbles(Timeline& timeline) {
  double busy = 0;
  double present = 0;
  for (const auto& spans : timeline.spans) {
    for (const Timeline::Span& span : spans) {
      busy += span.end - span.begin;
      timeline.makespan = std::max(timeline.makespan, span.end);
    }
    if (!spans.empty()) present += spans.back().end - spans.front().begin;
  }
  const double available = static_cast<double>(timeline.spans.size()) * timeline.makespan;
  timeline.bubble = (available - busy) / available;
  timeline.inner_bubble = (present - busy) / available;
}

}  // namespace

double PipelineCosts::of(Pass pass) const {
  switch (pass) {
    case Pass::forward:
      return forward;
    case Pass::backward:
      return backward;
    case Pass::backward_input:
      return backward_input;
    case Pass::backward_weight:
      return backward_weight;
  }
  check_failed("pass", "no such pass");
}

Timeline time_pipeline(const Pipeline& pipeline, const PipelineCosts& costs) {
  const MessageNumbers number_of(pipeline);
  std::vector<double> arrival(number_of.count());
  Timeline timeline;
  timeline.spans.resize(pipeline.programs.size());
  for (const auto& [rank, index] : play(pipeline).order) {
    const PipelineEntry& entry = pipeline.programs[static_cast<std::size_t>(rank)][index];
    auto& spans = timeline.spans[static_cast<std::size_t>(rank)];
    double begin = spans.empty() ? 0 : spans.back().end;
    if (const auto input = input_of(pipeline.placement, rank, entry)) {
      begin = std::max(begin, arrival[number_of(*input)]);
    }
    const double end = begin + costs.of(entry.pass);
    spans.push_back({begin, end});
    if (const auto output = output_of(pipeline.placement, rank, entry)) {
      arrival[number_of(*output)] = end + (output->from == output->to ? 0 : costs.link);
    }
  }
  for (std::size_t rank = 0; rank < pipeline.programs.size(); ++rank) {
    LOCKSTEP_CHECK(timeline.spans[rank].size() == pipeline.programs[rank].size(), "the pipeline is stuck");
  }
  add_bubbles(timeline);
  return timeline;
}

int peak_live_activations(const PipelineProgram& program) {
  int live = 0;
  int peak = 0;
  for (const PipelineEntry& entry : program) {
    if (entry.pass == Pass::forward) peak = std::max(peak, ++live);
    if (entry.adds_weight_gradient()) --live;
  }
  return peak;
}

}  // namespace lockstep::schedule
