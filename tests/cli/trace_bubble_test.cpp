// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trace_bubble.h"

#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/pipeline/timeline.h"

#include "tests/support/error_of.h"

namespace lockstep::cli {
namespace {

using schedule::PipelineSchedule;

// Steps as the simulator has them, a unit of it in 1000 microseconds, of pipelines whose ranks take turns.
std::vector<TracedPass> simulated(const schedule::PipelineSpec& spec, int steps,
                                  const schedule::PipelineCosts& costs = {}, int pipelines = 1) {
  const schedule::Pipeline pipeline = schedule::make_pipeline(spec);
  const schedule::Timeline timeline = schedule::time_pipeline(pipeline, costs);
  std::vector<TracedPass> passes;
  for (int step = 0; step < steps; ++step) {
    const double begin = step * (timeline.makespan + 7);
    for (int stage = 0; stage < spec.stages; ++stage) {
      const auto& program = pipeline.programs[static_cast<std::size_t>(stage)];
      for (std::size_t i = 0; i < program.size(); ++i) {
        const auto& span = timeline.spans[static_cast<std::size_t>(stage)][i];
        for (int place = 0; place < pipelines; ++place) {
          passes.push_back({.step = step + 5,
                            .rank = stage * pipelines + place,
                            .stage = stage,
                            .part = pipeline.placement.part_of(stage, program[i].chunk),
                            .entry = program[i],
                            .begin_us = 1000 * (begin + span.begin),
                            .end_us = 1000 * (begin + span.end)});
        }
      }
    }
  }
  return passes;
}

TEST(TraceBubble, OfASimulatedRunIsThatOfTheSimulator) {
  for (const schedule::PipelineSpec& spec : {schedule::PipelineSpec{PipelineSchedule::naive, 2, 3},
                                             {PipelineSchedule::gpipe, 3, 5},
                                             {PipelineSchedule::one_f_one_b, 4, 8},
                                             {PipelineSchedule::interleaved, 2, 4, 2},
                                             {PipelineSchedule::interleaved, 2, 4, 3},
                                             {PipelineSchedule::zbh1, 3, 7},
                                             {PipelineSchedule::zbv, 4, 8},
                                             {PipelineSchedule::one_f_one_b, 1, 2}}) {
    SCOPED_TRACE(name_of(spec.schedule));
    const TraceBubble bubble = bubble_of(simulated(spec, 3, {}, 2), "t.json");
    const double expected = schedule::time_pipeline(schedule::make_pipeline(spec)).bubble;
    EXPECT_NEAR(bubble.measured, expected, 1e-9);
    EXPECT_NEAR(bubble.predicted, expected, 1e-9);
    EXPECT_EQ(bubble.stages.size(), static_cast<std::size_t>(spec.stages));
    EXPECT_EQ(bubble.micro_batches, spec.micro_batches);
    EXPECT_EQ(bubble.steps, 2) << "without the first";
  }
}

TEST(TraceBubble, IsMeasuredAndPredictedApart) {
  const schedule::PipelineSpec spec = {PipelineSchedule::gpipe, 2, 4};
  const schedule::PipelineCosts costs = {.forward = 1, .backward = 3, .link = 1.5};
  const TraceBubble bubble = bubble_of(simulated(spec, 1, costs), "t.json");
  EXPECT_NEAR(bubble.measured, schedule::time_pipeline(schedule::make_pipeline(spec), costs).bubble, 1e-9);
  EXPECT_NEAR(bubble.predicted, 1.0 / 5, 1e-9);
  EXPECT_EQ(to_text(bubble),
            "2 stages, 4 micro-batches, 1 step\n"
            "stage          forward ms         backward ms    busy\n"
            "    0               1.000               3.000  69.6 %\n"
            "    1               1.000               3.000  69.6 %\n"
            "bubble 30.4 % (predicted 20.0 %)\n");
  EXPECT_EQ(to_json(bubble).substr(0, 12), "{\"bubble\":0.");
}

TEST(TraceBubble, LeavesOutStepsThatLackPasses) {
  const std::vector<TracedPass> whole = simulated({PipelineSchedule::zbh1, 2, 4}, 3);
  std::vector<TracedPass> cut = whole;
  cut.pop_back();
  EXPECT_EQ(bubble_of(cut, "t.json").steps, 1);
  const std::string nothing =
      "t.json has no step with the passes of all stages: give the trace of a whole run, or those of all its "
      "ranks";
  EXPECT_EQ(test::error_of<UsageError>([] { bubble_of({}, "t.json"); }), nothing);
  std::erase_if(cut, [](const TracedPass& pass) { return pass.stage == 0; });
  EXPECT_EQ(test::error_of<UsageError>([&] { bubble_of(cut, "t.json"); }), nothing);
}

TEST(TracedPasses, AreFoundAmongOtherEvents) {
  const std::vector<TracedPass> passes = passes_in(
      R"({"name":"process_name","ph":"M","pid":3,"args":{"name":"rank 3"}},
{"name":"forward block 0","cat":"compute","ph":"X","ts":1.0,"dur":2.0,"pid":3,"tid":4},
{"name":"weight-gradient micro-batch 5, chunk 1","cat":"pass","ph":"X","ts":1.5,"dur":2.0,"pid":3,"tid":3,)"
      R"("args":{"step":7,"micro_batch":5,"chunk":1,"stage":2,"part":6}})",
      "t.json");
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes[0].step, 7);
  EXPECT_EQ(passes[0].rank, 3);
  EXPECT_EQ(passes[0].stage, 2);
  EXPECT_EQ(passes[0].part, 6);
  EXPECT_EQ(passes[0].entry, (schedule::PipelineEntry{schedule::Pass::backward_weight, 5, 1}));
  EXPECT_EQ(passes[0].begin_us, 1.5);
  EXPECT_EQ(passes[0].end_us, 3.5);
}

TEST(TracedPasses, OfSomethingElseAreRefused) {
  for (const std::string wrong :
       {"{", "{\"cat\":\"pass\",\"ph\":\"X\"}", "7", R"({"name":"loss"})",
        R"({"name":"sideways micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":0,)"
        R"("args":{"step":1,"micro_batch":0,"chunk":0,"stage":0,"part":0}})",
        R"({"name":"forward micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":0,)"
        R"("args":{"step":1,"micro_batch":-1,"chunk":0,"stage":0,"part":0}})",
        R"({"name":"forward micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":0,)"
        R"("args":{"step":1,"micro_batch":0,"chunk":0,"stage":5000000,"part":0}})",
        // No whole number can hold these.
        R"({"name":"forward micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":1e99,)"
        R"("args":{"step":1,"micro_batch":0,"chunk":0,"stage":0,"part":0}})",
        R"({"name":"forward micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":5000000000,)"
        R"("args":{"step":1,"micro_batch":0,"chunk":0,"stage":0,"part":0}})",
        R"({"name":"forward micro-batch 0","cat":"pass","ph":"X","ts":1,"dur":1,"pid":0,)"
        R"("args":{"step":1e99,"micro_batch":0,"chunk":0,"stage":0,"part":0}})"}) {
    EXPECT_EQ(test::error_of<DataError>([&] {
                passes_in(wrong, "t.json");
              }).rfind("t.json is no trace that lockstep has written: ", 0),
              0U)
        << wrong;
  }
}

}  // namespace
}  // namespace lockstep::cli
