// SPDX-License-Identifier: Apache-2.0
//
// The shape of direct, one_shot and lane tree programs, on which shared memory relies for its single pass.
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/generate.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

Slice slice(std::uint32_t buffer, std::size_t begin, std::size_t end) {
  return {.buffer = buffer, .range = {begin, end}};
}

TEST(DirectGenerate, AllReduceIsOneRoundInPlace) {
  const Program program = generate(flat_spec(Op::all_reduce, Algorithm::direct, 3, 9), 1);
  const Round expected = {
      {.sources = {{kLocal, slice(0, 0, 3), 0}}, .into = {}, .send_to = {0}},
      {.sources = {{kLocal, slice(0, 6, 9), 0}}, .into = {}, .send_to = {2}},
      {.sources = {{0, {}, 0}, {kLocal, slice(0, 3, 6), 1}, {2, {}, 1}},
       .into = slice(0, 3, 6),
       .send_to = {0, 2},
       .finish = true},
      {.sources = {{0, {}, 0}}, .into = slice(0, 0, 3), .send_to = {}},
      {.sources = {{2, {}, 0}}, .into = slice(0, 6, 9), .send_to = {}},
  };
  ASSERT_EQ(program.rounds.size(), 1U);
  EXPECT_EQ(program.rounds[0], expected);
  EXPECT_EQ(program.buffer_elements, std::vector<std::size_t>{9});
}

TEST(DirectGenerate, EmptyChunksAreNotExchanged) {
  const Program owner = generate(flat_spec(Op::all_reduce, Algorithm::direct, 4, 1), 0);
  ASSERT_EQ(owner.rounds.size(), 1U);
  EXPECT_EQ(owner.rounds[0].size(), 1U);
  const Program other = generate(flat_spec(Op::all_reduce, Algorithm::direct, 4, 1), 3);
  ASSERT_EQ(other.rounds.size(), 1U);
  EXPECT_EQ(other.rounds[0].size(), 2U);
}

TEST(DirectGenerate, EveryOperationIsOneRoundWithoutScratch) {
  for (Op op : kAllOps) {
    for (const Program& program : programs_of(flat_spec(op, Algorithm::direct, 5, 23))) {
      EXPECT_EQ(program.rounds.size(), 1U) << name_of(op);
      if (op == Op::barrier) continue;
      EXPECT_EQ(program.buffer_elements.size(), program.scratch_from) << name_of(op);
    }
  }
}

TEST(DirectGenerate, AWorldOfOneOnlyCopiesBlocks) {
  for (Op op : kAllOps) {
    for (Algorithm algorithm : kFlatAlgorithms) {
      if (!supports(algorithm, op)) continue;
      const Program program = generate(flat_spec(op, algorithm, 1, 7), 0);
      EXPECT_EQ(program.rounds.size(), op == Op::all_to_all ? 1U : 0U) << name_of(op);
    }
  }
}

TEST(OneShotGenerate, AllReduceExchangesThenAdds) {
  const Program program = generate(flat_spec(Op::all_reduce, Algorithm::one_shot, 3, 4), 1);
  const std::vector<Round> expected = {
      {{.sources = {{0, {}, 0}}, .into = slice(1, 0, 4), .send_to = {}},
       {.sources = {{2, {}, 0}}, .into = slice(1, 4, 8), .send_to = {}},
       {.sources = {{kLocal, slice(0, 0, 4), 0}}, .into = {}, .send_to = {0, 2}}},
      {{.sources = {{kLocal, slice(1, 0, 4), 0}, {kLocal, slice(0, 0, 4), 1}, {kLocal, slice(1, 4, 8), 1}},
        .into = slice(0, 0, 4),
        .send_to = {},
        .finish = true}}};
  EXPECT_EQ(program.rounds, expected);
  EXPECT_EQ(program.buffer_elements, (std::vector<std::size_t>{4, 8}));
  EXPECT_EQ(program.scratch_from, 1U);
}

CollectiveSpec lane_spec(std::vector<std::vector<Subtree>> pieces, std::size_t count) {
  CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::direct, static_cast<int>(pieces.size()), count);
  spec.pieces = std::move(pieces);
  return spec;
}

TEST(LaneTreeGenerate, AddsWhatARankOwnsOnTheWayOut) {
  // Rank 0 owns lanes 0..2 as three partials, which are the subtrees {0, 1} and {2}; rank 1 owns lane 3.
  const CollectiveSpec spec = lane_spec({{{0, 1}, {1, 1}, {2, 1}}, {{3, 1}}}, 4);
  const Program program = generate(spec, 0);
  const Round expected = {
      {.sources = {{kLocal, slice(0, 2, 4), 0}, {kLocal, slice(1, 2, 4), 1}},
       .into = slice(0, 2, 4),
       .send_to = {1}},
      {.sources = {{kLocal, slice(2, 2, 4), 0}}, .into = {}, .send_to = {1}},
      {.sources = {{kLocal, slice(0, 0, 2), 0},
                   {kLocal, slice(1, 0, 2), 1},
                   {kLocal, slice(2, 0, 2), 0},
                   {1, {}, 2}},
       .into = slice(0, 0, 2),
       .send_to = {1},
       .finish = true},
      {.sources = {{1, {}, 0}}, .into = slice(0, 2, 4), .send_to = {}},
  };
  ASSERT_EQ(program.rounds.size(), 1U);
  EXPECT_EQ(program.rounds[0], expected);
  EXPECT_EQ(program.buffer_elements, (std::vector<std::size_t>{4, 4, 4}));
}

TEST(LaneTreeGenerate, ARankWithoutLanesSendsOnlyItsResult) {
  const CollectiveSpec spec = lane_spec({{{0, 2}}, {}, {{2, 2}}}, 6);
  const CheckResult result = check(spec, programs_of(spec));
  ASSERT_FALSE(result.violation) << result.violation->to_string();
  EXPECT_EQ(result.cost.elements_sent, (std::vector<std::size_t>{8, 4, 8}));
}

TEST(LaneTreeGenerate, OneLaneForEachRankIsPlainDirect) {
  CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::direct, 8, 100);
  const std::vector<Program> plain = programs_of(spec);
  for (int lane = 0; lane < 8; ++lane) spec.pieces.push_back({{lane, 1}});
  EXPECT_EQ(programs_of(spec), plain);
}

// Chunks of 3 and 2 elements in parts of at most 2: a round for each, and the second has one element of both.
TEST(LaneTreeGenerate, PartsFollowEachOther) {
  CollectiveSpec spec = lane_spec({{{0, 1}}, {{1, 1}, {2, 2}}}, 5);
  spec.segment_elements = 2;
  const Program program = generate(spec, 0);
  ASSERT_EQ(program.rounds.size(), 2U);
  EXPECT_EQ(program.rounds[0].front().sources[0].slice, slice(0, 3, 4)) << "to the other rank";
  EXPECT_EQ(program.rounds[0][1].into, slice(0, 0, 2)) << "here";
  EXPECT_EQ(program.rounds[1].front().sources[0].slice, slice(0, 4, 5));
  EXPECT_EQ(program.rounds[1][1].into, slice(0, 2, 3));
}

TEST(LaneTreeGenerate, AloneItAddsEverythingItself) {
  const CollectiveSpec spec = lane_spec({{{0, 1}, {1, 1}, {2, 2}}}, 5);
  const Program program = generate(spec, 0);
  ASSERT_EQ(program.rounds.size(), 1U);
  ASSERT_EQ(program.rounds[0].size(), 1U);
  EXPECT_EQ(program.rounds[0][0].sources.size(), 3U);
  EXPECT_TRUE(program.rounds[0][0].finish);
}

}  // namespace
}  // namespace lockstep::schedule::testing
