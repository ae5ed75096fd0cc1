// SPDX-License-Identifier: Apache-2.0
//
// Whoever holds which blocks, and in whatever order micro-batches pass them: the bits stay.
#include <gtest/gtest.h>

#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

using schedule::PipelineSchedule;
using schedule::PipelineSpec;

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::naive,       PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                                           PipelineSchedule::zbh1,        PipelineSchedule::zbv};

PipelineSpec spec_of(PipelineSchedule schedule, int stages) {
  return {.schedule = schedule,
          .stages = stages,
          .virtual_stages = schedule == PipelineSchedule::interleaved ? 2 : 1};
}

std::string shown(const Setting& setting, const LaneOwnership& lanes) {
  return std::string(name_of(setting.pipeline.schedule)) + ", " + std::to_string(setting.pipeline.stages) +
         " stages, " + std::to_string(lanes.world()) + " data-parallel";
}

void expect_bits(const Setting& setting, const LaneOwnership& lanes, const Outcome& expected) {
  for (const Outcome& outcome : train(lanes, setting)) expect_same(outcome, expected, shown(setting, lanes));
}

TEST(Pipeline, EveryScheduleGivesTheBitsOfOneProcess) {
  for (const bool is_gpt : {true, false}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      Setting setting = {.dtype = dtype, .micro_batches = 3, .dropout = 0.2F, .is_gpt = is_gpt};
      const Outcome alone = train(even_ownership(2, 1), setting).front();
      for (const PipelineSchedule schedule : kSchedules) {
        setting.pipeline = spec_of(schedule, 2);
        expect_bits(setting, even_ownership(2, 1), alone);
      }
    }
  }
}

TEST(Pipeline, AnyNumberOfStagesAndMicroBatches) {
  for (const int micro_batches : {1, 2}) {
    Setting setting = {.micro_batches = micro_batches, .dropout = 0.2F, .is_gpt = true, .layers = 5};
    const Outcome alone = train(even_ownership(2, 1), setting).front();
    for (const auto& [schedule, stages] : {std::pair{PipelineSchedule::one_f_one_b, 7},
                                           {PipelineSchedule::zbh1, 4},
                                           {PipelineSchedule::interleaved, 3},
                                           {PipelineSchedule::zbv, 3}}) {
      setting.pipeline = spec_of(schedule, stages);
      expect_bits(setting, even_ownership(2, 1), alone);
    }
  }
}

TEST(Pipeline, TogetherWithDataParallelismAndUnevenLanes) {
  Setting setting = {.dtype = DType::bf16, .dropout = 0.2F, .layers = 3};
  const Outcome alone = train(even_ownership(4, 1), setting).front();
  for (const PipelineSchedule schedule : kSchedules) {
    setting.pipeline = spec_of(schedule, 2);
    expect_bits(setting, even_ownership(4, 2), alone);
    expect_bits(setting, {{0, 1, 4}}, alone);
    expect_bits(setting, {{0, 0, 3, 4}}, alone);
    setting.zero_stage = 1 - setting.zero_stage;
  }
}

TEST(Pipeline, LanesMoveBetweenSteps) {
  const Setting plain = {.dropout = 0.2F};
  const Outcome alone = train(even_ownership(4, 1), plain).front();
  Setting setting = plain;
  setting.moves = {{{0, 1, 4}}, {{0, 4, 4}}, {{0, 3, 4}}};
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zbv}) {
    setting.pipeline = spec_of(schedule, 2);
    expect_bits(setting, even_ownership(4, 2), alone);
  }
}

TEST(Pipeline, AHeadOfItsOwn) {
  Setting setting = {.micro_batches = 3, .is_tied = false};
  const Outcome alone = train(even_ownership(2, 1), setting).front();
  for (const PipelineSchedule schedule : kSchedules) {
    setting.pipeline = spec_of(schedule, 2);
    expect_bits(setting, even_ownership(2, 1), alone);
  }
}

TEST(Pipeline, AMicroBatchIsForgottenOnceItIsDone) {
  Setting setting = {.micro_batches = 6};
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zbh1}) {
    setting.pipeline = spec_of(schedule, 2);
    for (const Outcome& outcome : train(even_ownership(2, 1), setting)) EXPECT_LE(outcome.most_batches, 2);
  }
  setting.pipeline = {};
  EXPECT_EQ(train(even_ownership(2, 1), setting).front().most_batches, 1);
}

TEST(Pipeline, RecomputationDoesNotShow) {
  Setting setting = {.micro_batches = 3, .dropout = 0.2F, .is_gpt = true, .layers = 3};
  const Outcome alone = train(even_ownership(2, 1), setting).front();
  for (const int every : {1, 2}) {
    setting.recompute_every = every;
    for (const PipelineSchedule schedule : kSchedules) {
      setting.pipeline = spec_of(schedule, 2);
      expect_bits(setting, even_ownership(2, 1), alone);
    }
  }
}

}  // namespace
}  // namespace lockstep::train
