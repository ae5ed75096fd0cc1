// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/schedule_svg.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace lockstep::cli {
namespace {

using schedule::Pass;
using schedule::PipelineEntry;
using schedule::Timeline;

constexpr double kPixelsPerTime = 28;
constexpr double kMostPixels = 20000;  // of the time axis; viewers refuse much larger pictures
constexpr int kRowHeight = 26;
constexpr int kLeft = 70;
constexpr int kMargin = 10;
constexpr int kLegendWidth = 560;
constexpr int kCaptionTop = 45;
constexpr int kLineHeight = 16;
constexpr double kLetterWidth = 6;

struct Look {
  std::string_view name;
  std::string_view colour;
};

// By pass. The colours stay apart for colour-blind readers.
constexpr std::array kLooks = {
    Look{"forward", "#56b4e9"},
    Look{"backward", "#009e73"},
    Look{"input gradient", "#f0c040"},
    Look{"weight gradient", "#cc79a7"},
};

const Look& look_of(Pass pass) {
  return kLooks[static_cast<std::size_t>(pass)];
}

// Later chunks are paler.
double opacity_of(int chunk) {
  return std::max(0.4, 1 - 0.3 * chunk);
}

std::string drawn(const PipelineEntry& entry, const Timeline::Span& span, double pixels_per_time, int top) {
  const double x = kLeft + span.begin * pixels_per_time;
  const double width = (span.end - span.begin) * pixels_per_time;
  const std::string name = to_string(entry);
  std::string text = fmt::format(
      "<g><title>{}: {} of micro-batch {}, chunk {}, {:.6g} to {:.6g}</title>"
      "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{:.1f}\"/>",
      name, look_of(entry.pass).name, entry.micro_batch, entry.chunk, span.begin, span.end, x, top, width,
      kRowHeight - 4, look_of(entry.pass).colour, opacity_of(entry.chunk));
  if (width >= kLetterWidth * static_cast<double>(name.size())) {
    text += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x + width / 2,
                        top + 15, name);
  }
  return text + "</g>\n";
}

std::string legend(int top) {
  std::string text;
  int x = kLeft;
  for (const Pass pass : schedule::kPasses) {
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{} "
        "{}</text>\n",
        x, top, look_of(pass).colour, x + 16, top + 10, letter_of(pass), look_of(pass).name);
    x += 130;
  }
  return text;
}

}  // namespace

std::string draw_svg(const TimedPipeline& timed, std::span<const std::string> caption) {
  const auto& [pipeline, timeline] = timed;
  const double pixels_per_time = std::min(kPixelsPerTime, kMostPixels / timeline.makespan);
  const int rows_height = kMargin + kRowHeight * static_cast<int>(pipeline.programs.size());
  double inner_width = std::max<double>(kLegendWidth, timeline.makespan * pixels_per_time);
  for (const std::string& line : caption) {
    inner_width = std::max(inner_width, kLetterWidth * static_cast<double>(line.size()));
  }
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1}\" viewBox=\"0 0 {0:.0f} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + inner_width + kMargin,
      rows_height + kCaptionTop + kLineHeight * static_cast<int>(caption.size()));
  for (std::size_t rank = 0; rank < pipeline.programs.size(); ++rank) {
    const int top = kMargin + kRowHeight * static_cast<int>(rank);
    text += fmt::format("<text x=\"{}\" y=\"{}\">stage {}</text>\n", kMargin, top + 15, rank);
    for (std::size_t i = 0; i < pipeline.programs[rank].size(); ++i) {
      text += drawn(pipeline.programs[rank][i], timeline.spans[rank][i], pixels_per_time, top);
    }
  }
  text += legend(rows_height + 10);
  int base = rows_height + kCaptionTop;
  for (const std::string& line : caption) {
    text += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft, base, line);
    base += kLineHeight;
  }
  return text + "</svg>\n";
}

}  // namespace lockstep::cli
