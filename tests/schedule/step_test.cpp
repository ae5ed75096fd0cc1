// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/step/step.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "lockstep/mesh/lanes.h"
#include "lockstep/schedule/check/step.h"

#include "tests/schedule/step_mutants.h"

namespace lockstep::schedule {
namespace {

std::vector<int> one_bucket_per_block(int blocks) {
  std::vector<int> buckets;
  for (int block = 0; block < blocks; ++block) buckets.push_back(block);
  return buckets;
}

void for_each_spec(const std::function<void(const StepSpec&)>& body, int most_lanes = 8) {
  for (int lanes = 1; lanes <= most_lanes; lanes *= 2) {
    for (int first = 0; first <= lanes; ++first) {
      for (int end = first; end <= lanes; ++end) {
        for (int micro_batches : {1, 2, 3}) {
          for (int recompute : {0, 1, 2}) {
            for (const auto& buckets :
                 {one_bucket_per_block(3), std::vector<int>{0}, std::vector<int>{2, 0, 0, 1}}) {
              if (testing::Test::HasFatalFailure()) return;
              for (bool shards_update : {false, true}) {
                body({.blocks = 3,
                      .first_lane = first,
                      .end_lane = end,
                      .micro_batches = micro_batches,
                      .recompute_every = recompute,
                      .shards_update = shards_update,
                      .sums_shared = recompute == 1,
                      .bucket_blocks = buckets});
              }
            }
          }
        }
      }
    }
  }
}

std::string shown(const StepSpec& spec, const StepProgram& program) {
  std::string text =
      "lanes [" + std::to_string(spec.first_lane) + ", " + std::to_string(spec.end_lane) + "):";
  for (const Action& action : program.actions) {
    text += " " + std::string(name_of(action.act)) + "(" + std::to_string(action.lane) + "," +
            std::to_string(action.micro_batch) + "," + std::to_string(action.block) + "," +
            std::to_string(action.bucket) + "," + std::to_string(action.slot) + ")";
  }
  return text;
}

TEST(Step, EveryProgramIsProved) {
  for_each_spec([](const StepSpec& spec) {
    const StepProgram program = make_step(spec);
    const StepCheck check = check_step(spec, program);
    ASSERT_FALSE(check.violation) << check.violation->reason << "\n" << shown(spec, program);
  });
}

TEST(Step, AllRanksTakeTheBucketsInOneOrder) {
  const auto order_of = [](const StepSpec& spec) {
    std::vector<int> reduced;
    std::vector<int> gathered;
    for (const Action& action : make_step(spec).actions) {
      if (action.act == Act::reduce) reduced.push_back(action.bucket);
      if (action.act == Act::gather) gathered.push_back(action.bucket);
    }
    EXPECT_EQ(reduced, gathered);
    return reduced;
  };
  StepSpec all = {
      .blocks = 3, .first_lane = 0, .end_lane = 8, .shards_update = true, .bucket_blocks = {2, 0, 0, 1}};
  StepSpec none = all;
  none.end_lane = 0;
  EXPECT_EQ(order_of(all), (std::vector<int>{0, 3, 1, 2}));
  EXPECT_EQ(order_of(none), order_of(all));
}

TEST(Step, SlotsAreThoseOfTheTree) {
  const auto slots_of = [](int first, int end) {
    return make_step({.first_lane = first, .end_lane = end}).slots;
  };
  EXPECT_EQ(slots_of(3, 4), 1);
  EXPECT_EQ(slots_of(0, 2), 2);
  EXPECT_EQ(slots_of(0, 8), 4);
  EXPECT_EQ(slots_of(1, 4), 3);  // {1} {2, 3}: the second piece needs two
  EXPECT_EQ(slots_of(5, 5), 1);  // no lane, but the result has to go somewhere
}

TEST(Step, MemoryIsPredicted) {
  const StepSpec kept = {.blocks = 6, .micro_batches = 3};
  EXPECT_EQ(check_step(kept, make_step(kept)).cost.kept_passes, 6);
  EXPECT_EQ(check_step(kept, make_step(kept)).cost.kept_inputs, 0);
  const StepSpec all = {.blocks = 6, .micro_batches = 3, .recompute_every = 1};
  EXPECT_EQ(check_step(all, make_step(all)).cost.kept_passes, 1);
  EXPECT_EQ(check_step(all, make_step(all)).cost.kept_inputs, 6);
  const StepSpec half = {.blocks = 6, .recompute_every = 2};
  EXPECT_EQ(check_step(half, make_step(half)).cost.kept_passes,
            3);  // one has gone when one is computed again
  EXPECT_EQ(check_step(half, make_step(half)).cost.kept_inputs, 3);
}

TEST(Step, MemoryIsPredictedInBytes) {
  const auto bytes_of = [](StepSpec spec) {
    spec.blocks = 3;
    spec.micro_batches = 2;
    spec.block_memory = {{.output = 1, .inner = 10, .work = 7}, {2, 20, 5}, {4, 40, 3}};
    return check_step(spec, make_step(spec)).cost.pass_bytes;
  };
  EXPECT_EQ(bytes_of({}), 11U + 22 + 44 + 3) << "all passes, and the work of the last block";
  EXPECT_EQ(bytes_of({.recompute_every = 1}), 1U + 2 + 44 + 3) << "outputs, and one block's pass";
  EXPECT_EQ(bytes_of({.recompute_every = 2}), 1U + 22 + 44 + 3) << "blocks 0 and 2 are computed again";
}

// What a bucket leaves waits for the next of its size, so that what a size once needed stays.
TEST(Step, MemoryOfBucketsThatComeAndGoIsTheMostOfEachSize) {
  const auto bytes_of = [](const StepSpec& like, std::vector<BucketMemory> buckets) {
    StepSpec spec = like;
    spec.blocks = static_cast<int>(buckets.size());
    spec.shards_update = spec.shards_gradients = true;
    spec.bucket_blocks = one_bucket_per_block(spec.blocks);
    std::vector<Chunk> chunks;
    for (int block = 0; block < spec.blocks; ++block) chunks.push_back({block, block + 1});
    spec.stage = breadth_first_stage(chunks, spec.end_lane - spec.first_lane);
    spec.bucket_memory = std::move(buckets);
    return check_step(spec, make_step(spec)).cost.bucket_bytes;
  };
  const BucketMemory layer = {.weights = 1, .gradients = 100};
  EXPECT_EQ(bytes_of({}, {layer}), 100U);
  EXPECT_EQ(bytes_of({}, {layer, layer, layer, layer}), 200U) << "one is summed while the next is computed";
  EXPECT_EQ(bytes_of({.shards_weights = true}, {layer, layer, layer, layer}), 202U) << "and one is fetched";
  const BucketMemory table = {.weights = 10, .gradients = 1000};
  EXPECT_EQ(bytes_of({.shards_weights = true}, {table, layer, layer, layer}), 1000U + 200 + 10 + 2);
  EXPECT_EQ(bytes_of({.shards_weights = true, .tied = true}, {table, layer, layer, layer}),
            1000U + 200 + 10 + 2);
}

TEST(Step, ReducingBeginsWhileBlocksStillCompute) {
  const StepSpec spec = {.blocks = 4, .bucket_blocks = one_bucket_per_block(4)};
  const std::vector<Action> actions = make_step(spec).actions;
  const auto first_reduce =
      std::find_if(actions.begin(), actions.end(), [](const Action& a) { return a.act == Act::reduce; });
  const auto last_backward =
      std::find_if(actions.rbegin(), actions.rend(), [](const Action& a) { return a.act == Act::backward; });
  EXPECT_LT(first_reduce - actions.begin(), actions.rend() - last_backward - 1);
}

// --- Broken on purpose. Whatever is changed, the checker must see it.

TEST(StepMutations, AreAllSeen) {
  constexpr int kMostLanes = 4;
  for_each_spec(
      [](const StepSpec& spec) {
        for_each_mutant(make_step(spec), [&](const StepProgram& mutant, std::size_t action, auto how) {
          ASSERT_TRUE(check_step(spec, mutant).violation) << how << ": action " << action << "\n"
                                                          << shown(spec, mutant);
        });
      },
      kMostLanes);
}

TEST(Steps, RanksOfUnevenLanesAreProvedTogether) {
  std::vector<StepSpec> specs;
  std::vector<StepProgram> programs;
  for (const auto& [first, end] : {std::pair{0, 3}, {3, 3}, {3, 8}}) {
    specs.push_back({.blocks = 3,
                     .first_lane = first,
                     .end_lane = end,
                     .micro_batches = 2,
                     .shards_update = true,
                     .bucket_blocks = {2, 0, 0, 1}});
    programs.push_back(make_step(specs.back()));
  }
  EXPECT_FALSE(check_steps(specs, programs));
}

TEST(Steps, AnotherOrderOfCollectivesIsSeen) {
  const StepSpec spec = {.blocks = 2, .shards_update = true, .bucket_blocks = {0, 0}};
  const std::vector<StepProgram> same = {make_step(spec), make_step(spec)};
  const std::vector<StepSpec> specs = {spec, spec};
  ASSERT_FALSE(check_steps(specs, same));
  std::vector<StepProgram> other = same;
  // Each is a right program by itself.
  for (Action& action : other[1].actions) {
    if (action.bucket >= 0) action.bucket = 1 - action.bucket;
  }
  ASSERT_FALSE(check_step(spec, other[1]).violation);
  const auto wrong = check_steps(specs, other);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->program, 1U);
  EXPECT_EQ(wrong->violation.reason, "collective 0 is not the one that another rank calls");
}

TEST(StepMutations, TheFirstViolationIsNamed) {
  const StepSpec spec = {.blocks = 2, .first_lane = 0, .end_lane = 2, .bucket_blocks = {1, 0}};
  StepProgram program = make_step(spec);
  std::erase_if(program.actions,
                [](const Action& action) { return action.act == Act::merge && action.bucket == 0; });
  const StepCheck check = check_step(spec, program);
  ASSERT_TRUE(check.violation);
  EXPECT_EQ(program.actions[check.violation->action].act, Act::reduce);
  EXPECT_EQ(check.violation->reason, "bucket 0 is reduced while slot 0 does not hold lanes [0, 2)");
}

}  // namespace
}  // namespace lockstep::schedule
