// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/schedule_gantt.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/cli/schedule_svg.h"

namespace lockstep::cli {
namespace {

using schedule::make_pipeline;
using schedule::Pipeline;
using schedule::PipelineSchedule;
using schedule::PipelineSpec;
using schedule::time_pipeline;
using schedule::Timeline;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string drawn(const PipelineSpec& spec, const GanttStyle& style) {
  const Pipeline pipeline = make_pipeline(spec);
  const Timeline timeline = time_pipeline(pipeline);
  return draw_gantt({pipeline, timeline}, style);
}

TEST(ScheduleGantt, NamesPassesWhereTheyFit) {
  EXPECT_EQ(drawn({PipelineSchedule::gpipe, 2, 1}, {}),
            "stage 0 F0          B0\n"
            "stage 1    F0 B0\n");
}

TEST(ScheduleGantt, ShowsLettersWhereNamesDoNotFit) {
  EXPECT_EQ(drawn({PipelineSchedule::gpipe, 2, 1}, {.columns = 20}),
            "stage 0 F...BB\n"
            "stage 1 .FBB..\n");
}

TEST(ScheduleGantt, IsNeverWiderThanItsColumns) {
  for (const int columns : {20, 40, 80, 200}) {
    const std::string text = drawn({PipelineSchedule::zbv, 12, 24}, {.columns = columns});
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_LE(end - at, static_cast<std::size_t>(columns));
      at = end + 1;
    }
  }
}

TEST(ScheduleGantt, IsColouredOnlyWhenAsked) {
  const PipelineSpec spec = {PipelineSchedule::zbv, 2, 3};
  EXPECT_THAT(drawn(spec, {}), Not(HasSubstr("\033")));
  EXPECT_THAT(drawn(spec, {.coloured = true}), HasSubstr("\033[30;44mF0"));
  EXPECT_THAT(drawn(spec, {.columns = 20, .coloured = true}), HasSubstr("\033[30;104mF\033[0m"));
}

TEST(ScheduleSvg, HasARectanglePerPass) {
  const Pipeline pipeline = make_pipeline({PipelineSchedule::zbv, 2, 3});
  const Timeline timeline = time_pipeline(pipeline);
  const std::string svg = draw_svg({pipeline, timeline}, std::array<std::string, 2>{"the caption", "two"});
  std::size_t passes = 0;
  for (std::size_t at = svg.find("<g>"); at != std::string::npos; at = svg.find("<g>", at + 1)) ++passes;
  EXPECT_EQ(passes, 2u * 3 * 2 * 3);  // stages, micro-batches, chunks, passes
  EXPECT_THAT(svg, HasSubstr("<title>W2.1: weight gradient of micro-batch 2, chunk 1"));
  EXPECT_THAT(svg, ContainsRegex("the caption</text>\n<text [^>]*>two</text>\n</svg>\n"));
}

}  // namespace
}  // namespace lockstep::cli
