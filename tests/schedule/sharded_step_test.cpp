// SPDX-License-Identifier: Apache-2.0
//
// Training steps of ranks that share out gradients and weights.
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/step.h"
#include "lockstep/schedule/step/step.h"

#include "tests/schedule/step_mutants.h"

namespace lockstep::schedule {
namespace {

struct Shape {
  int first_lane = 0;
  int end_lane = 1;
  int micro_batches = 1;
  int recompute_every = 0;
  bool tied = false;
  bool shards_weights = true;
  bool copies_on_hosts = false;
};

// Chunks of one, two and one blocks, each with a bucket, the second with two.
StepSpec spec_of(const Shape& shape) {
  const int micro_batches = (shape.end_lane - shape.first_lane) * shape.micro_batches;
  return {.blocks = 4,
          .first_lane = shape.first_lane,
          .end_lane = shape.end_lane,
          .micro_batches = shape.micro_batches,
          .recompute_every = shape.recompute_every,
          .shards_update = true,
          .shards_gradients = true,
          .shards_weights = shape.shards_weights,
          .copies_on_hosts = shape.copies_on_hosts,
          .tied = shape.tied,
          .sums_shared = shape.recompute_every == 1,
          .stage = breadth_first_stage({{0, 1}, {1, 3}, {3, 4}}, micro_batches),
          .bucket_blocks = {0, 1, 2, 3}};
}

void for_each_shape(const std::function<void(const Shape&)>& body) {
  for (const auto& [first, end] : {std::pair{0, 1}, {0, 2}, {1, 4}, {3, 8}, {2, 2}}) {
    for (int micro_batches : {1, 3}) {
      for (int recompute : {0, 1, 2}) {
        for (bool tied : {false, true}) {
          for (bool weights : {false, true}) {
            body({first, end, micro_batches, recompute, tied, weights, false});
            if (recompute == 0) body({first, end, micro_batches, recompute, tied, weights, true});
          }
        }
      }
    }
  }
}

std::string shown(const Shape& shape) {
  return "lanes [" + std::to_string(shape.first_lane) + ", " + std::to_string(shape.end_lane) + ") of " +
         std::to_string(shape.micro_batches) + " micro-batches, recompute " +
         std::to_string(shape.recompute_every) + (shape.tied ? ", tied" : "") +
         (shape.shards_weights ? ", weights" : "") + (shape.copies_on_hosts ? ", copies on hosts" : "");
}

TEST(ShardedStep, EveryProgramIsProved) {
  for_each_shape([](const Shape& shape) {
    const StepSpec spec = spec_of(shape);
    const StepCheck check = check_step(spec, make_step(spec));
    EXPECT_FALSE(check.violation) << shown(shape) << ": " << check.violation->reason << " at action "
                                  << check.violation->action;
  });
}

void expect_same_collectives(bool weights, bool copies) {
  std::vector<StepSpec> specs;
  std::vector<StepProgram> programs;
  for (const auto& [first, end] : {std::pair{0, 3}, {3, 3}, {3, 8}}) {
    specs.push_back(spec_of({first, end, 2, 0, true, weights, copies}));
    programs.push_back(make_step(specs.back()));
  }
  EXPECT_FALSE(check_steps(specs, programs));
}

TEST(ShardedStep, RanksWithOtherLanesCallTheSameCollectives) {
  for (bool weights : {false, true}) {
    for (bool copies : {false, true}) expect_same_collectives(weights, copies);
  }
}

// The sum over hosts has all the way back to come; memory is waited for inside hosts only.
TEST(ShardedStep, HostsAreAddedWhileGradientsAreComputed) {
  StepSpec spec = spec_of({.end_lane = 2, .copies_on_hosts = true});
  const std::vector<Action> actions = make_step(spec).actions;
  const auto place = [&](Act act, int bucket) {
    return std::ranges::find_if(
        actions, [&](const Action& action) { return action.act == act && action.bucket == bucket; });
  };
  EXPECT_LT(place(Act::reduce, 2), place(Act::add_hosts, 3));
  EXPECT_LT(place(Act::add_hosts, 3), place(Act::reduce, 0));
  EXPECT_LT(place(Act::add_hosts, 0), place(Act::finish, 3));

  spec.copies_on_hosts = false;
  const StepCheck check = check_step(spec, {.actions = actions, .piece_slots = make_step(spec).piece_slots});
  EXPECT_TRUE(check.violation) << "there are no copies to add";
}

int most_at_once(const StepProgram& program, Act begins, Act ends) {
  int now = 0;
  int most = 0;
  for (const Action& action : program.actions) {
    if (action.act == begins) most = std::max(most, ++now);
    if (action.act == ends) --now;
  }
  return most;
}

// So that memory follows the formulas: weights of a chunk, of the next one, and of the head; sums of a bucket
// that is finished while the next is computed.
TEST(ShardedStep, FewWeightsAndSumsAreThereAtOnce) {
  std::vector<Chunk> chunks;
  StepSpec spec = spec_of({0, 4, 2, 0, true, true});
  spec.bucket_blocks.clear();
  for (int block = 0; block < 20; ++block) {
    chunks.push_back({block, block + 1});
    spec.bucket_blocks.push_back(block);
  }
  spec.blocks = 20;
  spec.stage = breadth_first_stage(chunks, 8);
  const StepProgram program = make_step(spec);
  ASSERT_FALSE(check_step(spec, program).violation);
  EXPECT_LE(most_at_once(program, Act::fetch, Act::drop), 3);
  EXPECT_EQ(std::ranges::count(program.actions, Act::fetch, &Action::act), 20 + 1 + 20 - 1)
      << "each once on the way forward, the tied one for the loss, and all but the last on the way back";
  EXPECT_EQ(most_at_once(program, Act::reduce, Act::finish), 2);
}

TEST(ShardedStepMutations, AreAllSeen) {
  for_each_shape([](const Shape& shape) {
    if (shape.end_lane - shape.first_lane > 3 || ::testing::Test::HasFatalFailure()) return;
    const StepSpec spec = spec_of(shape);
    for_each_mutant(make_step(spec), [&](const StepProgram& mutant, std::size_t action, auto how) {
      ASSERT_TRUE(check_step(spec, mutant).violation)
          << how << ": action " << action << " (" << name_of(mutant.actions[action].act) << ") of "
          << shown(shape);
    });
  });
}

}  // namespace
}  // namespace lockstep::schedule
