// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/check.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

#include "tests/support/error_of.h"

namespace lockstep::spec {
namespace {

using test::error_of;
using ::testing::HasSubstr;

TEST(Lanes, AreTheDegreeRoundedUpUnlessGiven) {
  EXPECT_EQ(lanes_for({}, 1), 1);
  EXPECT_EQ(lanes_for({}, 3), 4);
  EXPECT_EQ(lanes_for({}, 4), 4);
  EXPECT_EQ(lanes_for({.lanes = 8}, 3), 8);
  EXPECT_THAT(error_of<UsageError>([] { lanes_for({.lanes = 2}, 3); }),
              HasSubstr("set it to 4, or to a larger power of two"));
}

RunSpec run_with(const Parallelism& parallelism) {
  RunSpec run;
  run.training.global_batch_size = 0;
  run.parallelism = parallelism;
  fill_model(run);
  return run;
}

TEST(WorkloadOf, DataParallelWorkersAreWhatOtherAxesLeave) {
  const auto degree = [](const Parallelism& parallelism, std::int64_t world) {
    return workload_of(run_with(parallelism), world).data_parallel;
  };
  EXPECT_EQ(degree({}, 6), 6);
  EXPECT_EQ(degree({.tensor = 2, .pipeline = 3}, 12), 2);
  EXPECT_EQ(degree({.data = 4}, 4), 4);
  EXPECT_EQ(degree({.tensor = -1}, 4), 1);
  EXPECT_EQ(degree({.data = 2, .pipeline = -1}, 4), 2);
  EXPECT_THAT(error_of<UsageError>([&] { degree({.tensor = 4}, 6); }), HasSubstr("start 4 or 8 workers"));
  EXPECT_THAT(error_of<UsageError>([&] { degree({.data = 4}, 3); }),
              HasSubstr("start 4 workers, or set data to 3"));
}

TEST(Checkpoints, AreMadeOnTheWayOrOfTheLastStepOnly) {
  const auto saves = [](const Checkpoint& checkpoint) {
    RunSpec run;
    run.training.steps = 100;
    run.checkpoint = checkpoint;
    return saves_on_the_way(run);
  };
  EXPECT_FALSE(saves({}));
  EXPECT_TRUE(saves({.interval = 99}));
  EXPECT_FALSE(saves({.interval = 100})) << "that is the last step";
  EXPECT_TRUE(saves({.interval = -1}));
  EXPECT_TRUE(saves({.interval_seconds = 0.5}));
  EXPECT_FALSE(saves({.enabled = false, .interval = 10}));
}

TEST(MicroBatches, FillTheGlobalBatch) {
  EXPECT_EQ(micro_batches_per_lane({.micro_batch_size = 8, .global_batch_size = 32}, 4), 1);
  EXPECT_EQ(micro_batches_per_lane({.micro_batch_size = 2, .global_batch_size = 32}, 4), 4);
  EXPECT_EQ(micro_batches_per_lane({.micro_batch_size = 8, .global_batch_size = 0}, 4), 1);
}

TEST(MicroBatches, NameTheNearestThatWork) {
  EXPECT_EQ(
      error_of<UsageError>(
          [] { micro_batches_per_lane({.micro_batch_size = 8, .global_batch_size = 40}, 4); }),
      "training.global_batch_size = 40 must be a multiple of 4 lanes x training.micro_batch_size = 8; the "
      "nearest that work: 32 or 64, or training.micro_batch_size = 5");
  EXPECT_THAT(error_of<UsageError>(
                  [] { micro_batches_per_lane({.micro_batch_size = 8, .global_batch_size = 3}, 4); }),
              HasSubstr("the nearest that work: 32"));
}

TEST(RecomputeStride, ReadsWordsAndNumbers) {
  EXPECT_EQ(recompute_stride({.recompute = "none"}), 0);
  EXPECT_EQ(recompute_stride({.recompute = "all"}), 1);
  EXPECT_EQ(recompute_stride({.recompute = "3"}), 3);
  for (const char* bad : {"", "0", "-1", "2x", "99999999999999999999"}) {
    EXPECT_EQ(recompute_stride({.recompute = bad}), std::nullopt) << bad;
  }
}

TEST(WorkloadOf, PutsItTogether) {
  RunSpec run;
  run.training = {.seq_len = 128, .micro_batch_size = 2, .global_batch_size = 48};
  run.parallelism.lanes = 8;
  EXPECT_EQ(workload_of(run, 3), (Workload{.data_parallel = 3,
                                           .lanes = 8,
                                           .micro_batches_per_lane = 3,
                                           .global_batch_size = 48,
                                           .tokens_per_step = 48 * 128}));
}

TEST(WorkloadOf, RefusesAStepThatNobodyCanCount) {
  RunSpec run;
  run.training = {.seq_len = 1 << 24, .micro_batch_size = 1 << 10};
  run.parallelism.lanes = 1 << 20;
  EXPECT_EQ(workload_of(run, 1).tokens_per_step, std::int64_t{1} << 54);
  run.training.micro_batch_size = 1 << 20;
  EXPECT_EQ(
      error_of<UsageError>([&] { workload_of(run, 1); }),
      "training.micro_batch_size = 1048576 on 1048576 lanes makes a step of 1099511627776 sequences, but "
      "1073741824 are the most; lower it or parallelism.lanes");
}

TEST(WorkloadOf, WantsOneWeightForEachWorker) {
  RunSpec run;
  run.parallelism.lane_weights = {1, 2};
  EXPECT_NO_THROW(workload_of(run, 2));
  const Places places = {{"parallelism.lane_weights", "flag --parallelism.lane_weights"}};
  const auto refusal = [&](std::int64_t world) {
    return error_of<UsageError>([&] { workload_of(run, world, places); });
  };
  EXPECT_EQ(refusal(3),
            "flag --parallelism.lane_weights: parallelism.lane_weights has 2 numbers for 3 data-parallel "
            "workers; give 3, or none for equal shares, or start 2 workers");
  run.parallelism.tensor = 2;
  EXPECT_EQ(refusal(2),
            "flag --parallelism.lane_weights: parallelism.lane_weights has 2 numbers for 1 data-parallel "
            "worker; give 1, or none for equal shares, or start 4 workers");
  run.parallelism = {.data = 2, .lane_weights = {1}};
  EXPECT_EQ(refusal(2),
            "flag --parallelism.lane_weights: parallelism.lane_weights has 1 number for 2 data-parallel "
            "workers; give 2, or none for equal shares");
}

TEST(WorkloadOf, SaysWhereWhatDoesNotFitWasSet) {
  const auto refusal = [](const std::vector<std::string>& flags, std::int64_t world) {
    const PlacedRun given = load_placed_run("/dev/null", flags);
    return error_of<UsageError>([&] { settled(given.run, world, given.places); });
  };
  EXPECT_EQ(
      refusal({"--parallelism.data", "1"}, 2),
      "flag --parallelism.data: a mesh of pipeline 1 x data 1 x tensor 1 does not have 2 workers; start 1 "
      "worker, or set data to 2, or set tensor to 2");
  EXPECT_EQ(
      refusal({"--parallelism.lanes", "2"}, 3),
      "flag --parallelism.lanes: parallelism.lanes = 2 leaves some of the 3 data-parallel workers without "
      "work; set it to 4, or to a larger power of two");
  EXPECT_EQ(
      refusal({"--training.global_batch_size", "8"}, 2),
      "flag --training.global_batch_size: training.global_batch_size = 8 must be a multiple of 2 lanes x "
      "training.micro_batch_size = 8; the nearest that work: 16, or training.micro_batch_size = 4");
}

TEST(Settled, GivesTheSameWorkOnOtherWorlds) {
  const RunSpec run = run_with({});
  const Workload of_six = workload_of(run, 6);
  const RunSpec fixed = settled(run, 6);
  for (const std::int64_t world : {1, 2, 3, 8}) {
    const Workload moved = workload_of(fixed, world);
    EXPECT_EQ(moved.lanes, of_six.lanes);
    EXPECT_EQ(moved.global_batch_size, of_six.global_batch_size);
  }
}

TEST(Settled, AnAxisThatTakesTheRestGetsItsSize) {
  const Parallelism tensor = settled(run_with({.tensor = -1, .pipeline = 2}), 8).parallelism;
  EXPECT_EQ(tensor.tensor, 4);
  EXPECT_EQ(tensor.tensor_lanes, 4);
  EXPECT_EQ(tensor.pipeline, 2);
  EXPECT_EQ(tensor.data, -1) << "so that more workers can be more data-parallel ones";
  const Parallelism pipeline = settled(run_with({.data = 2, .tensor = 2, .pipeline = -1}), 12).parallelism;
  EXPECT_EQ(pipeline.pipeline, 3);
  EXPECT_EQ(settled(run_with({.data = 3, .tensor = -1}), 3).parallelism.tensor, 1);
}

TEST(Settled, WhatTheSizeOfAnAxisContradictsIsRefused) {
  EXPECT_THAT(error_of<UsageError>([] { settled(run_with({.tensor = -1, .sequence_parallel = true}), 1); }),
              HasSubstr("parallelism.sequence_parallel"));
  EXPECT_EQ(settled(run_with({.tensor = -1, .sequence_parallel = true}), 2).parallelism.tensor, 2);
}

// One run file for any number of workers; what is settled can be read again.
TEST(Settled, OneStageHasNoSchedule) {
  const RunSpec run = run_with({.pipeline = -1, .schedule = "interleaved", .virtual_stages = 2});
  EXPECT_EQ(settled(run, 2).parallelism.schedule, "interleaved");
  EXPECT_EQ(settled(run, 2).parallelism.virtual_stages, 2);
  const RunSpec alone = settled(run, 1);
  EXPECT_EQ(alone.parallelism.schedule, "1f1b");
  EXPECT_EQ(alone.parallelism.virtual_stages, 1);
  EXPECT_EQ(parse_run(to_toml(alone), "resolved.toml"), alone);
}

TEST(FlagsWithoutPipeline, ComeBeforeWhatARunSaysOfStages) {
  const Parallelism parallelism =
      parse_run("[parallelism]\npipeline = 2\nschedule = \"zbv\"\nvirtual_stages = 2\npart_blocks = [1, 2]",
                "run.toml", flags_without_pipeline())
          .parallelism;
  EXPECT_EQ(parallelism, Parallelism());
}

TEST(PlainRun, HasTheLanesOfALayoutAndNothingElseOfIt) {
  RunSpec run;
  run.model.layers = 5;
  run.parallelism = {.data = 2,
                     .tensor = 2,
                     .pipeline = 2,
                     .schedule = "zbv",
                     .zero_stage = 3,
                     .zero_scope = ZeroScope::host,
                     .sequence_parallel = true,
                     .recompute = "all",
                     .lanes = 8,
                     .tensor_lanes = 4,
                     .lane_weights = {1, 3},
                     .rebalance_freq = 2};
  run.zero = {.offload = Offload::disk, .offload_folder = "/scratch"};
  RunSpec expected;
  expected.model.layers = 5;
  expected.parallelism = {.zero_stage = 0, .lanes = 8, .tensor_lanes = 4};
  EXPECT_EQ(plain_run(run), expected);
}

}  // namespace
}  // namespace lockstep::spec
