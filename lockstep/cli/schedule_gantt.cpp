// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/schedule_gantt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace lockstep::cli {
namespace {

using schedule::PipelineEntry;
using schedule::PipelineProgram;
using schedule::Timeline;
using Spans = std::vector<Timeline::Span>;

// Background colours by pass: blue, green, cyan, magenta; those of odd chunks are bright.
constexpr std::array kBackgrounds = {44, 42, 46, 45};
constexpr int kBright = 60;

std::string colour_of(const PipelineEntry& entry) {
  const int background = kBackgrounds[static_cast<std::size_t>(entry.pass)];
  return fmt::format("\033[30;{}m", entry.chunk % 2 == 0 ? background : background + kBright);
}

class Gantt {
 public:
  Gantt(const TimedPipeline& timed, const GanttStyle& style)
      : programs_(timed.pipeline.programs), timeline_(timed.timeline), style_(style) {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      for (std::size_t i = 0; i < programs_[rank].size(); ++i) {
        const Timeline::Span span = timeline_.spans[rank][i];
        shortest_ = std::min(shortest_, span.end - span.begin);
        longest_name_ = std::max(longest_name_, to_string(programs_[rank][i]).size());
      }
    }
  }

  std::string draw() const {
    const std::size_t digits = std::to_string(programs_.size() - 1).size();
    const double room = std::max(10, style_.columns - static_cast<int>(digits) - 7);
    const double named_columns_per_time = static_cast<double>(longest_name_ + 1) / shortest_;
    const bool named = timeline_.makespan * named_columns_per_time <= room;
    const double lettered_columns = std::min(room, std::round(timeline_.makespan / shortest_));
    std::string text;
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      text += fmt::format("stage {:>{}} ", rank, digits);
      text += named ? named_row(rank, named_columns_per_time) : lettered_row(rank, lettered_columns);
      text += '\n';
    }
    return text;
  }

 private:
  std::string painted(const PipelineEntry& entry, const std::string& text) const {
    return style_.coloured ? colour_of(entry) + text + "\033[0m" : text;
  }

  std::string named_row(std::size_t rank, double columns_per_time) const {
    const auto column = [&](double time) { return static_cast<int>(std::lround(time * columns_per_time)); };
    std::string row;
    int at = 0;
    for (std::size_t i = 0; i < programs_[rank].size(); ++i) {
      const PipelineEntry& entry = programs_[rank][i];
      const int begin = column(timeline_.spans[rank][i].begin);
      const int end = column(timeline_.spans[rank][i].end);
      row.append(static_cast<std::size_t>(begin - at), ' ');
      row += painted(entry, fmt::format("{:<{}}", to_string(entry), end - begin - 1)) + ' ';
      at = end;
    }
    return row.substr(0, row.find_last_not_of(' ') + 1);
  }

  std::string lettered_row(std::size_t rank, double columns) const {
    std::string row;
    std::size_t next = 0;
    const Spans& spans = timeline_.spans[rank];
    for (int column = 0; column < static_cast<int>(columns); ++column) {
      const double time = (column + 0.5) * timeline_.makespan / columns;
      while (next < spans.size() && spans[next].end <= time) ++next;
      const bool computes = next < spans.size() && spans[next].begin <= time;
      if (computes) {
        const PipelineEntry& entry = programs_[rank][next];
        row += painted(entry, std::string(1, schedule::letter_of(entry.pass)));
      } else {
        row += '.';
      }
    }
    return row;
  }

  const std::vector<PipelineProgram>& programs_;
  const Timeline& timeline_;
  GanttStyle style_;
  double shortest_ = std::numeric_limits<double>::infinity();  // pass
  std::size_t longest_name_ = 0;
};

}  // namespace

std::string draw_gantt(const TimedPipeline& timed, const GanttStyle& style) {
  return Gantt(timed, style).draw();
}

}  // namespace lockstep::cli
