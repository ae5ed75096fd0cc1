// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/cli/schedule_gantt.h"

namespace lockstep::cli {

struct ScheduleReport {
  std::string title;  // "zbv", or the file that it comes from
  TimedPipeline timed;
  schedule::PipelineCosts costs;
  std::vector<int> peak_live;  // by stage, in activations of chunks
};

// "makespan 51, bubble 5.9 % (0.0 % between a stage's first and last pass)"
std::string bubble_text(const ScheduleReport& report);

// "activations kept at most: 4 3 2 1 by stage"; of chunks also what they are of a stage
std::string memory_text(const ScheduleReport& report);

// For people: what it is, the drawing, and the figures.
std::string report_text(const ScheduleReport& report, const GanttStyle& style);

// The same as one JSON object, with all passes and their times.
std::string report_json(const ScheduleReport& report);

}  // namespace lockstep::cli
