// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/pass_spans.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

using schedule::Act;
using schedule::Pass;
using schedule::PipelineSchedule;

Clock::time_point at(int time) {
  return Clock::time_point(Clock::duration(time));
}

// The passes that are found when each action takes from 10 i to 10 i + 9.
std::vector<PassSpan> spans_of(const PassesOfStep& step, const std::vector<schedule::Action>& actions) {
  PassSpans spans(step);
  std::vector<PassSpan> found;
  int time = 0;
  for (const schedule::Action& action : actions) {
    if (const auto span = spans.add(action, at(time), at(time + 9))) found.push_back(*span);
    time += 10;
  }
  if (const auto span = spans.finish()) found.push_back(*span);
  return found;
}

// Stages of 2 lanes with 2 micro-batches each and one block in each part, whose layers are computed again.
schedule::StepSpec step_of(PipelineSchedule schedule, int chunks, Rank rank, int recompute_every) {
  const schedule::Pipeline pipeline = schedule::make_pipeline(
      {.schedule = schedule, .stages = 3, .micro_batches = 4, .virtual_stages = chunks});
  schedule::Stage stage = {.placement = pipeline.placement,
                           .rank = rank,
                           .chunks = {},
                           .passes = pipeline.programs[static_cast<std::size_t>(rank)]};
  for (int chunk = 0; chunk < pipeline.placement.chunks; ++chunk) {
    const int part = pipeline.placement.part_of(rank, chunk);
    stage.chunks.push_back({2 * part, 2 * part + 2});
  }
  return {.blocks = 2 * pipeline.placement.parts(),
          .first_lane = 4,
          .end_lane = 6,
          .micro_batches = 2,
          .recompute_every = recompute_every,
          .stage = stage,
          .bucket_blocks = {}};
}

TEST(PassSpans, AreThoseOfTheSchedule) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
        PipelineSchedule::zbh1, PipelineSchedule::zbv}) {
    for (const int recompute_every : {0, 1, 2}) {
      for (Rank rank = 0; rank < 3; ++rank) {
        SCOPED_TRACE(std::string(name_of(schedule)) + " stage " + std::to_string(rank));
        const int chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
        const schedule::StepSpec spec = step_of(schedule, chunks, rank, recompute_every);
        const std::vector<PassSpan> spans =
            spans_of({.stage = *spec.stage, .first_lane = 4, .micro_batches = 2}, make_step(spec).actions);
        schedule::PipelineProgram found;
        Clock::time_point last = at(0);
        for (const PassSpan& span : spans) {
          found.push_back(span.entry);
          EXPECT_LE(last, span.began);
          EXPECT_LT(span.began, span.ended);
          last = span.ended;
        }
        EXPECT_EQ(found, spec.stage->passes);
      }
    }
  }
}

TEST(PassSpans, TakeFromTheFirstBlockToTheLastOrTheLoss) {
  const PassesOfStep step = {.stage = {.placement = {}, .chunks = {{0, 2}}}, .micro_batches = 1};
  const std::vector<PassSpan> spans =
      spans_of(step, {{.act = Act::clear, .lane = 0, .chunk = 0},
                      {.act = Act::forward, .lane = 0, .micro_batch = 0, .block = 0},
                      {.act = Act::forward, .lane = 0, .micro_batch = 0, .block = 1},
                      {.act = Act::loss, .lane = 0, .micro_batch = 0},
                      {.act = Act::receive_gradient, .lane = 0, .micro_batch = 0, .chunk = 0},
                      {.act = Act::recompute, .lane = 0, .micro_batch = 0, .block = 1},
                      {.act = Act::backward_input, .lane = 0, .micro_batch = 0, .block = 1},
                      {.act = Act::reduce, .bucket = 0},
                      {.act = Act::recompute, .lane = 0, .micro_batch = 0, .block = 0},
                      {.act = Act::backward_input, .lane = 0, .micro_batch = 0, .block = 0},
                      {.act = Act::clip}});
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].entry.pass, Pass::forward);
  EXPECT_EQ(spans[0].began, at(10));
  EXPECT_EQ(spans[0].ended, at(39));
  EXPECT_EQ(spans[1].entry.pass, Pass::backward_input);
  EXPECT_EQ(spans[1].began, at(50));
  EXPECT_EQ(spans[1].ended, at(99));
}

}  // namespace
}  // namespace lockstep::train
