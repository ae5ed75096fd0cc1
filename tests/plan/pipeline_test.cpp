// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/pipeline.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/check.h"
#include "lockstep/spec/presets.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::plan {
namespace {

using schedule::Chunk;
using test::error_of;
using test::TemporaryFolder;
using ::testing::EndsWith;

spec::RunSpec run_with(int stages, const std::string& schedule = "1f1b", int layers = 6) {
  spec::RunSpec run;
  run.model.layers = layers;
  run.parallelism.pipeline = stages;
  run.parallelism.schedule = schedule;
  run.training.global_batch_size = 4 * run.training.micro_batch_size;
  spec::fill_model(run);
  return run;
}

TEST(CutByCost, MakesTheMostExpensivePartAsCheapAsPossible) {
  const std::vector<double> costs = {0, 1, 1, 1, 1, 5};
  EXPECT_EQ(cut_by_cost(costs, 1), (std::vector<Chunk>{{0, 6}}));
  EXPECT_EQ(cut_by_cost(costs, 2), (std::vector<Chunk>{{0, 5}, {5, 6}}));
  EXPECT_EQ(cut_by_cost(costs, 6).back(), (Chunk{5, 6}));
}

// All ways to cut, one by one.
double best_by_trying(std::span<const double> costs, int parts) {
  if (parts == 1) return std::accumulate(costs.begin(), costs.end(), 0.0);
  double best = 1e300;
  for (std::size_t first = 1; first + static_cast<std::size_t>(parts) - 1 <= costs.size(); ++first) {
    const double mine =
        std::accumulate(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(first), 0.0);
    best = std::min(best, std::max(mine, best_by_trying(costs.subspan(first), parts - 1)));
  }
  return best;
}

TEST(CutByCost, IsAsGoodAsTryingEverything) {
  for (std::size_t blocks = 1; blocks <= 8; ++blocks) {
    for (std::size_t seed = 0; seed < 20; ++seed) {
      std::vector<double> costs;
      for (std::size_t i = 0; i < blocks; ++i)
        costs.push_back(static_cast<double>((seed * 31 + i * i * 7) % 11));
      for (int parts = 1; parts <= static_cast<int>(blocks); ++parts) {
        double most = 0;
        int next = 0;
        for (const Chunk& chunk : cut_by_cost(costs, parts)) {
          ASSERT_EQ(chunk.first_block, next);
          ASSERT_GT(chunk.end_block, chunk.first_block);
          next = chunk.end_block;
          most = std::max(
              most, std::accumulate(costs.begin() + chunk.first_block, costs.begin() + chunk.end_block, 0.0));
        }
        EXPECT_EQ(next, static_cast<int>(blocks));
        EXPECT_EQ(most, best_by_trying(costs, parts));
      }
    }
  }
}

TEST(CutByCost, TakesManyBlocksAndParts) {
  const std::vector<double> costs(10002, 1.0);
  const std::vector<Chunk> chunks = cut_by_cost(costs, 1024);
  EXPECT_EQ(chunks.back().end_block, 10002);
  EXPECT_TRUE(std::ranges::all_of(
      chunks, [](const Chunk& chunk) { return chunk.end_block - chunk.first_block <= 10; }));
}

TEST(PipelinePlan, TheHeadWeighsWhatItWeighs) {
  spec::RunSpec run;
  run.model = spec::preset_model("gpt2-124m");
  run.training.seq_len = 512;
  run.parallelism.pipeline = 2;
  spec::fill_model(run);
  // The head is worth nearly five of the twelve layers.
  EXPECT_EQ(read_pipeline_plan(run, 2).parts, (std::vector<Chunk>{{0, 9}, {9, 14}}));
}

TEST(PipelinePlan, PartsCanBeGivenByHand) {
  spec::RunSpec run = run_with(2, "zbv");
  run.parallelism.part_blocks = {1, 3, 3, 1};
  const PipelinePlan plan = read_pipeline_plan(run, 2);
  EXPECT_EQ(chunks_of(plan, 0), (std::vector<Chunk>{{0, 1}, {7, 8}}));
  EXPECT_EQ(chunks_of(plan, 1), (std::vector<Chunk>{{1, 4}, {4, 7}}));
  run.parallelism.part_blocks = {1, 3, 3};
  EXPECT_EQ(
      error_of<UsageError>([&] { read_pipeline_plan(run, 2); }),
      "parallelism.part_blocks gives 7 blocks to 3 parts, but the model has 8 blocks (embedding and last "
      "norm are two of them) and the pipeline 4 parts");
}

TEST(PipelinePlan, OneStageHasTheWholeModelWhateverTheSchedule) {
  EXPECT_EQ(read_pipeline_plan(run_with(1, "no-such.csv"), 1).parts, (std::vector<Chunk>{{0, 8}}));
}

TEST(PipelinePlan, MorePartsThanBlocksAreRefused) {
  EXPECT_EQ(
      error_of<UsageError>([] { read_pipeline_plan(run_with(5, "zbv"), 5); }),
      "parallelism.pipeline = 5 with zbv makes 10 parts, but the model has only 8 blocks (embedding and "
      "last norm are two of them) to share out; use at most 4 stages");
}

TEST(PipelinePlan, MoreVirtualStagesThanBlocksAreRefusedWithThoseThatFit) {
  const auto refusal = [](int stages, int virtual_stages, int layers) {
    spec::RunSpec run = run_with(stages, "interleaved", layers);
    run.parallelism.virtual_stages = virtual_stages;
    return error_of<UsageError>([&] { read_pipeline_plan(run, stages); });
  };
  EXPECT_EQ(refusal(2, 4, 5),
            "parallelism.pipeline = 2 with interleaved makes 8 parts, but the model has only 7 blocks "
            "(embedding and last norm are two of them) to share out; use at most 3 virtual stages");
  EXPECT_THAT(refusal(3, 3, 5), EndsWith("use at most 2 virtual stages, or 2 stages"));
  EXPECT_THAT(refusal(8, 2, 5), EndsWith("use at most 7 stages with 1 virtual stage"));
}

TEST(PipelinePlan, ANameThatIsNoScheduleIsRefusedAlsoWhereItHasNoEffect) {
  for (const int stages : {1, 2}) {
    EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run_with(stages, "1fb1"), stages); }),
              "unknown pipeline schedule '1fb1': did you mean '1f1b'?");
  }
}

TEST(PipelinePlan, AGivenScheduleIsRefusedWhenLanesMove) {
  const TemporaryFolder folder;
  const std::string given = folder.write("two.csv", "F0,F1,B0,B1\nF0,B0,F1,B1\n");
  spec::RunSpec run = run_with(2, given);
  run.parallelism.rebalance_freq = 5;
  run.parallelism.lanes = 4;
  EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run, 4); }),
            given +
                " is a schedule of 2 micro-batches, but with parallelism.rebalance_freq = 5 the workers' "
                "numbers of them change; set it to 0, or choose a schedule by its name");
  run.parallelism.lanes = 2;
  run.training.global_batch_size = 2 * run.training.micro_batch_size;
  EXPECT_EQ(read_pipeline_plan(run, 2).given->micro_batches, 2) << "one worker of each stage: none can move";
}

TEST(PipelinePlan, LanesThatMayMoveAreCounted) {
  spec::RunSpec run = run_with(64, "1f1b", 62);
  run.parallelism.rebalance_freq = 1;
  run.training.global_batch_size = std::int64_t{20000} * run.training.micro_batch_size;
  EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run, 128); }),
            "a pipeline with 1280000 forward passes over all stages: at most 1048576 are possible");
  run.parallelism.rebalance_freq = 0;
  EXPECT_EQ(read_pipeline_plan(run, 128).parts.size(), 64U);
}

TEST(PipelinePlan, ComesFromAFileThatTheCheckerAccepts) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.csv", "F0,F1,F2,F3,B0,B1,B2,B3\nF0,B0,F1,B1,F2,B2,F3,B3\n");
  const PipelinePlan plan = read_pipeline_plan(run_with(2, good), 2);
  EXPECT_EQ(stage_of(plan, 1, 4).passes.size(), 8U);
  EXPECT_EQ(stage_of(plan, 1, 4).passes[1], (schedule::PipelineEntry{schedule::Pass::backward, 0, 0}));
  EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run_with(3, good), 3); }),
            good + " is a schedule of 2 stages, but parallelism.pipeline = 3");
  spec::RunSpec run = run_with(2, good);
  run.training.global_batch_size *= 2;
  EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run, 2); }),
            good +
                " is a schedule of 4 micro-batches, but a worker has 8 in a step (its lanes x "
                "training.global_batch_size / (lanes x training.micro_batch_size))");
  const std::string stuck = folder.write("stuck.csv", "F0,B0,F1,B1\nF0,F1,B0,B1\n");
  EXPECT_EQ(error_of<UsageError>([&] { read_pipeline_plan(run_with(2, stuck), 2); }),
            stuck +
                ": stage 0, pass 2 (B0): deadlock: waits for the gradient of micro-batch 0 for part 0 from "
                "rank 1, which itself waits before F1");
}

TEST(MeshOf, HasTheAxesOfTheRun) {
  const Mesh mesh = mesh_of(run_with(2), 6);
  EXPECT_EQ(mesh.size(Axis::data), 3);
  EXPECT_THROW(mesh_of(run_with(4), 6), UsageError);
}

}  // namespace
}  // namespace lockstep::plan
