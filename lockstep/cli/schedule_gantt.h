// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/schedule/pipeline/timeline.h"

namespace lockstep::cli {

// A pipeline and when it computes what, as drawings show it. Both must outlive this.
struct TimedPipeline {
  const schedule::Pipeline& pipeline;
  const schedule::Timeline& timeline;
};

struct GanttStyle {
  int columns = 2000;     // at most, with the names of the stages
  bool coloured = false;  // with the escape sequences of terminals
};

// One row per stage, from left to right in time. Every pass has its name when the names fit into the columns
// that the passes have; otherwise a column has the letter of the pass that runs in its middle, and '.' when
// none does.
std::string draw_gantt(const TimedPipeline& timed, const GanttStyle& style);

}  // namespace lockstep::cli
