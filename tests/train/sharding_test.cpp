// SPDX-License-Identifier: Apache-2.0
//
// Whatever data-parallel ranks share out among them: the bits stay.
#include <gtest/gtest.h>

#include "lockstep/transport/loopback/endpoint.h"

#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

using schedule::PipelineSchedule;

std::string shown(const Setting& setting, const LaneOwnership& lanes) {
  return "ZeRO " + std::to_string(setting.zero_stage) + ", " + std::to_string(lanes.world()) +
         " data-parallel, " + std::to_string(setting.pipeline.stages) + " stages of " +
         std::string(name_of(setting.pipeline.schedule)) + ", recompute " +
         std::to_string(setting.recompute_every) + ", " + std::to_string(setting.hosts) + " hosts";
}

void expect_bits(const Setting& setting, const LaneOwnership& lanes, const Outcome& expected) {
  for (const Outcome& outcome : train(lanes, setting)) expect_same(outcome, expected, shown(setting, lanes));
}

TEST(Sharding, GivesTheBitsOfOneProcess) {
  for (const bool is_gpt : {true, false}) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      for (const bool is_tied : {true, false}) {
        Setting setting = {
            .dtype = dtype, .dropout = 0.2F, .is_gpt = is_gpt, .is_tied = is_tied, .layers = 3};
        const Outcome alone = train(even_ownership(4, 1), setting).front();
        for (const int zero_stage : {0, 1, 2, 3}) {
          setting.zero_stage = zero_stage;
          for (const LaneOwnership& lanes : {even_ownership(4, 2), even_ownership(4, 3),
                                             LaneOwnership{{0, 1, 4}}, LaneOwnership{{0, 0, 3, 4}}}) {
            expect_bits(setting, lanes, alone);
          }
        }
      }
    }
  }
}

// Lanes of hosts that are subtrees of a size are summed inside hosts first; others are not.
TEST(Sharding, ACopyOnEveryHostGivesTheBitsOfOneProcess) {
  struct Case {
    int hosts;
    LaneOwnership lanes;
  };
  const Case cases[] = {{2, even_ownership(8, 4)}, {2, {{0, 1, 4, 7, 8}}},       {2, {{0, 4, 4, 5, 8}}},
                        {2, {{0, 3, 5, 5, 8}}},    {2, {{0, 1, 2, 4, 5, 8, 8}}}, {3, even_ownership(8, 6)},
                        {2, even_ownership(8, 2)}, {1, even_ownership(8, 4)},    {4, even_ownership(8, 8)}};
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    Setting setting = {.dtype = dtype, .dropout = 0.2F, .is_gpt = dtype == DType::fp32, .steps = 3};
    const Outcome alone = train(even_ownership(8, 1), setting).front();
    for (const int zero_stage : {1, 2, 3}) {
      setting.zero_stage = zero_stage;
      for (const Case& one : cases) {
        setting.hosts = one.hosts;
        expect_bits(setting, one.lanes, alone);
      }
    }
    setting.zero_stage = 0;
    setting.hosts = 2;
    expect_bits(setting, even_ownership(8, 4), alone);
  }
}

TEST(Sharding, ACopyOnEveryHostTogetherWithPipelines) {
  Setting setting = {.dtype = DType::bf16, .dropout = 0.2F, .is_gpt = true, .layers = 3};
  const Outcome alone = train(even_ownership(4, 1), setting).front();
  setting.hosts = 2;
  for (const int zero_stage : {1, 2, 3}) {
    setting.zero_stage = zero_stage;
    for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zbv}) {
      setting.pipeline = {.schedule = schedule, .stages = 2};
      expect_bits(setting, even_ownership(4, 4), alone);
      expect_bits(setting, {{0, 1, 1, 2, 4}}, alone);
    }
  }
}

TEST(Sharding, ACopyOnEveryHostTogetherWithSharedLayers) {
  Setting setting = {.dropout = 0.2F, .steps = 3, .tensor_lanes = 2};
  const Outcome alone = train(even_ownership(4, 1), setting).front();
  setting.tensor = 2;
  setting.hosts = 2;
  for (const int zero_stage : {1, 3}) {
    setting.zero_stage = zero_stage;
    expect_bits(setting, even_ownership(4, 4), alone);
    expect_bits(setting, {{0, 1, 1, 2, 4}}, alone);
  }
}

TEST(Sharding, BucketsAndRecomputationDoNotShow) {
  Setting setting = {.micro_batches = 3, .dropout = 0.2F, .layers = 5};
  const Outcome alone = train(even_ownership(4, 1), setting).front();
  for (const int zero_stage : {2, 3}) {
    setting.zero_stage = zero_stage;
    for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{20'000}, std::int64_t{1} << 40}) {
      setting.bucket_elements = elements;
      for (const int every : {0, 1, 2}) {
        setting.recompute_every = every;
        expect_bits(setting, even_ownership(4, 2), alone);
      }
    }
  }
}

TEST(Sharding, TogetherWithPipelines) {
  Setting setting = {.dtype = DType::bf16, .dropout = 0.2F, .is_gpt = true, .layers = 3};
  const Outcome alone = train(even_ownership(4, 1), setting).front();
  for (const int zero_stage : {2, 3}) {
    setting.zero_stage = zero_stage;
    for (const PipelineSchedule schedule :
         {PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zbv}) {
      setting.pipeline = {.schedule = schedule,
                          .stages = 2,
                          .virtual_stages = schedule == PipelineSchedule::interleaved ? 2 : 1};
      expect_bits(setting, even_ownership(4, 2), alone);
      expect_bits(setting, {{0, 4, 4}}, alone);
    }
  }
}

TEST(Sharding, LanesMoveBetweenSteps) {
  Setting setting = {.dropout = 0.2F};
  const Outcome alone = train(even_ownership(8, 1), setting).front();
  setting.moves = {{{0, 1, 8}}, {{0, 8, 8}}, {{0, 5, 8}}};
  for (const int zero_stage : {2, 3}) {
    setting.zero_stage = zero_stage;
    expect_bits(setting, even_ownership(8, 2), alone);
  }
  setting.hosts = 2;
  setting.moves = {{{0, 2, 4, 7, 8}}, {{0, 1, 5, 6, 8}}, {{0, 3, 4, 4, 8}}};
  expect_bits(setting, even_ownership(8, 4), alone);
}

}  // namespace
}  // namespace lockstep::train
