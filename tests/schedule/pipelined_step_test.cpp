// SPDX-License-Identifier: Apache-2.0
//
// Training steps of the stages of pipelines.
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/step.h"
#include "lockstep/schedule/step/step.h"

#include "tests/schedule/step_mutants.h"

namespace lockstep::schedule {
namespace {

struct Shape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 2;
  int virtual_stages = 1;
  int first_lane = 0;
  int end_lane = 2;
  int micro_batches = 2;
  int recompute_every = 0;
  bool tied = false;
};

// Parts of one and of two blocks in turn; a bucket for every block of a stage.
std::vector<StepSpec> stages_of(const Shape& shape) {
  const int micro_batches = (shape.end_lane - shape.first_lane) * shape.micro_batches;
  const PipelineSpec spec = {shape.schedule, shape.stages, std::max(1, micro_batches), shape.virtual_stages};
  Pipeline pipeline = make_pipeline(spec);
  if (micro_batches == 0) pipeline.programs.assign(static_cast<std::size_t>(shape.stages), {});
  const int parts = pipeline.placement.parts();
  const auto first_block = [](int part) { return part + part / 2; };
  std::vector<StepSpec> specs;
  for (Rank rank = 0; rank < shape.stages; ++rank) {
    Stage stage = {.placement = pipeline.placement,
                   .rank = rank,
                   .chunks = {},
                   .passes = pipeline.programs[static_cast<std::size_t>(rank)]};
    std::vector<int> buckets;
    for (int chunk = 0; chunk < pipeline.placement.chunks; ++chunk) {
      const int part = pipeline.placement.part_of(rank, chunk);
      stage.chunks.push_back({first_block(part), first_block(part + 1)});
      for (int block = first_block(part); block < first_block(part + 1); ++block) buckets.push_back(block);
    }
    specs.push_back({.blocks = first_block(parts),
                     .first_lane = shape.first_lane,
                     .end_lane = shape.end_lane,
                     .micro_batches = shape.micro_batches,
                     .recompute_every = shape.recompute_every,
                     .shards_update = true,
                     .tied = shape.tied,
                     .sums_shared = shape.recompute_every == 1,
                     .stage = stage,
                     .bucket_blocks = buckets});
  }
  return specs;
}

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::naive,       PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                                           PipelineSchedule::zbh1,        PipelineSchedule::zbv};

void for_each_shape(const std::vector<std::pair<int, int>>& lanes, int most_stages,
                    const std::function<void(const Shape&)>& body) {
  for (const PipelineSchedule schedule : kSchedules) {
    for (int stages = 1; stages <= most_stages; ++stages) {
      for (const auto& [first, end] : lanes) {
        for (int micro_batches : {1, 2, 3}) {
          for (int recompute : {0, 1, 2}) {
            const int chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
            for (bool tied : {false, true}) {
              if (testing::Test::HasFatalFailure()) return;
              body({schedule, stages, chunks, first, end, micro_batches, recompute, tied});
            }
          }
        }
      }
    }
  }
}

std::string shown(const Shape& shape, Rank rank) {
  return std::string(name_of(shape.schedule)) + ", stage " + std::to_string(rank) + " of " +
         std::to_string(shape.stages) + ", lanes [" + std::to_string(shape.first_lane) + ", " +
         std::to_string(shape.end_lane) + ") of " + std::to_string(shape.micro_batches) + " micro-batches" +
         (shape.tied ? ", tied" : "");
}

TEST(PipelinedStep, EveryProgramIsProved) {
  for_each_shape({{0, 1}, {0, 2}, {0, 4}, {1, 4}, {3, 8}, {2, 2}}, 5, [](const Shape& shape) {
    const std::vector<StepSpec> specs = stages_of(shape);
    ASSERT_FALSE(check_stages(specs)) << shown(shape, 0) << ": " << check_stages(specs)->violation.reason;
    for (const StepSpec& spec : specs) {
      const StepCheck check = check_step(spec, make_step(spec));
      ASSERT_FALSE(check.violation) << shown(shape, spec.stage->rank) << ": " << check.violation->reason
                                    << " at action " << check.violation->action;
    }
  });
}

TEST(PipelinedStep, RanksWithOtherLanesReduceInTheSameOrder) {
  for (const PipelineSchedule schedule : kSchedules) {
    const int chunks = schedule == PipelineSchedule::interleaved ? 2 : 1;
    std::vector<std::vector<StepSpec>> replicas;
    for (const auto& [first, end] : {std::pair{0, 3}, {3, 3}, {3, 8}}) {
      replicas.push_back(stages_of({schedule, 3, chunks, first, end, 2, 0}));
    }
    for (std::size_t stage = 0; stage < 3; ++stage) {
      std::vector<StepSpec> specs;
      std::vector<StepProgram> programs;
      for (const auto& replica : replicas) {
        specs.push_back(replica[stage]);
        programs.push_back(make_step(specs.back()));
      }
      EXPECT_FALSE(check_steps(specs, programs)) << name_of(schedule);
    }
  }
}

TEST(PipelinedStep, KeepsAsManyPassesAsTheScheduleSays) {
  const auto kept = [](PipelineSchedule schedule, Rank rank) {
    const StepSpec spec = stages_of({schedule, 4, 1, 0, 1, 8, 0})[static_cast<std::size_t>(rank)];
    const int blocks = spec.stage->chunks[0].end_block - spec.stage->chunks[0].first_block;
    return check_step(spec, make_step(spec)).cost.kept_passes / blocks;
  };
  EXPECT_EQ(kept(PipelineSchedule::gpipe, 0), 8);
  EXPECT_EQ(kept(PipelineSchedule::one_f_one_b, 0), 4);
  EXPECT_EQ(kept(PipelineSchedule::one_f_one_b, 2), 2);
  EXPECT_EQ(kept(PipelineSchedule::zbh1, 0), 4);
  EXPECT_EQ(kept(PipelineSchedule::naive, 0), 1);
}

// --- Broken on purpose.

// One of LOCKSTEP_STRIDE, beginning with the first.
TEST(PipelinedStepMutations, AreAllSeen) {
  std::uint64_t mutants = 0;
  for_each_shape({{0, 1}, {1, 4}}, 3, [&mutants](const Shape& shape) {
    for (const StepSpec& spec : stages_of(shape)) {
      for_each_mutant(make_step(spec), [&](const StepProgram& mutant, std::size_t action, auto how) {
        if (mutants++ % LOCKSTEP_STRIDE != 0) return;
        ASSERT_TRUE(check_step(spec, mutant).violation)
            << how << ": action " << action << " of " << shown(shape, spec.stage->rank);
      });
    }
  });
}

// Pipelines that wait for each other's sums in the middle of their passes can wait for ever.
TEST(PipelinedStepMutations, AStageThatWaitsForASumTooEarlyIsSeen) {
  StepSpec spec = stages_of({.schedule = PipelineSchedule::interleaved, .virtual_stages = 2})[0];
  spec.shards_gradients = true;
  StepProgram program = make_step(spec);
  ASSERT_FALSE(check_step(spec, program).violation);
  const auto is = [](Act act) { return [act](const Action& action) { return action.act == act; }; };
  const auto finish = std::ranges::find_if(program.actions, is(Act::finish));
  const Action moved = *finish;
  program.actions.erase(finish);
  const auto reduce = std::ranges::find_if(program.actions, is(Act::reduce));
  ASSERT_EQ(reduce->bucket, moved.bucket);
  const auto last_pass = std::find_if(program.actions.rbegin(), program.actions.rend(), is(Act::backward));
  ASSERT_LT(reduce - program.actions.begin(), program.actions.rend() - last_pass)
      << "there is a pass after the first sum has begun";
  program.actions.insert(reduce + 1, moved);
  EXPECT_EQ(check_step(spec, program).violation->reason,
            "a stage waits for other pipelines before its passes are done");
}

TEST(PipelinedStepMutations, StagesThatDoNotFitAreSeen) {
  const std::vector<StepSpec> right = stages_of({});
  const auto reason = [&](const std::function<void(std::vector<StepSpec>&)>& change) {
    std::vector<StepSpec> specs = right;
    change(specs);
    const auto wrong = check_stages(specs);
    return wrong ? wrong->violation.reason : "accepted";
  };
  EXPECT_EQ(reason([](auto&) {}), "accepted");
  EXPECT_EQ(reason([](auto& specs) { specs.pop_back(); }), "a stage is missing");
  EXPECT_EQ(reason([](auto& specs) { ++specs[1].end_lane; }),
            "a stage is not of the same pipeline, lanes or model as the first");
  EXPECT_EQ(reason([](auto& specs) { ++specs[1].stage->chunks[0].first_block; }),
            "part 1 does not begin where the one before it ends, or is empty");
  EXPECT_EQ(reason([](auto& specs) { ++specs[1].stage->chunks[0].end_block; }),
            "the last part does not end with the last block");
  EXPECT_NE(reason([](auto& specs) { std::swap(specs[0].stage->passes[0], specs[0].stage->passes[1]); }),
            "accepted");
}

}  // namespace
}  // namespace lockstep::schedule
