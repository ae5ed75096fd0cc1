// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/plan.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::comm {
namespace {

using kernels::ReduceOp;
using schedule::Algorithm;
using schedule::Op;
using testing::HasSubstr;

Planner planner(Rank rank = 1, int world = 3) {
  return {rank, Topology{.host_of = std::vector<int>(static_cast<std::size_t>(world), 0)}, LinkModel{}};
}

PlanRequest all_reduce(std::optional<Algorithm> algorithm = {}) {
  return {.op = Op::all_reduce, .count = 1000, .algorithm = algorithm, .exact = false};
}

TEST(Planner, AnswersEqualRequestsFromMemory) {
  Planner plans = planner();
  const auto first = plans.plan(all_reduce());
  EXPECT_EQ(plans.plan(all_reduce()), first);
  PlanRequest other = all_reduce();
  other.count = 1001;
  EXPECT_NE(plans.plan(other), first);
  other = all_reduce(Algorithm::hierarchical);
  const auto direct = plans.plan(other);
  other.inner = Algorithm::ring;
  EXPECT_NE(plans.plan(other), direct);
}

// So many moves as a large buffer has in parts fill it sooner than so many small plans.
TEST(Planner, ForgetsPlansWhenTheyHaveManyMoves) {
  const auto kept_after = [](const PlanRequest& kind, std::size_t plans) {
    Planner planner_of_four = planner(0, 4);
    const auto first = planner_of_four.plan(all_reduce());
    PlanRequest request = kind;
    for (std::size_t i = 0; i < plans; ++i, ++request.count) planner_of_four.plan(request);
    return planner_of_four.plan(all_reduce()) == first;
  };
  EXPECT_TRUE(kept_after(all_reduce(Algorithm::direct), 1000));
  PlanRequest long_one = all_reduce(Algorithm::tree);
  long_one.count = std::size_t{1} << 28;
  const std::size_t moves = planner(0, 4).plan(long_one)->script->moves();
  RecordProperty("moves", static_cast<int>(moves));
  EXPECT_FALSE(kept_after(long_one, (std::size_t{1} << 18) / moves + 1));
}

TEST(Planner, RefusedRequestsTakeNoPlaceInMemory) {
  Planner plans = planner();
  const auto kept = plans.plan(all_reduce());
  PlanRequest refused = all_reduce(Algorithm::ring);
  refused.exact = true;
  for (refused.count = 1; refused.count <= 5000; ++refused.count) {
    ASSERT_THROW(plans.plan(refused), UsageError);
  }
  EXPECT_EQ(plans.plan(all_reduce()), kept);
}

TEST(Planner, GivesTheAlgorithmThatIsNamed) {
  Planner plans = planner();
  for (Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::direct, Algorithm::one_shot,
        Algorithm::mesh, Algorithm::hierarchical}) {
    EXPECT_EQ(plans.plan(all_reduce(algorithm))->spec.algorithm, algorithm);
  }
  PlanRequest hybrid = all_reduce(Algorithm::hierarchical);
  hybrid.inner = Algorithm::ring;
  hybrid.outer = Algorithm::tree;
  const auto plan = plans.plan(hybrid);
  EXPECT_EQ(plan->spec.inner, Algorithm::ring);
  EXPECT_EQ(plan->spec.outer, Algorithm::tree);
  EXPECT_THAT(describe(plan->contract), HasSubstr("hierarchical(ring,tree)"));
}

TEST(Planner, GivesTheGridThatIsNamed) {
  Planner plans = planner(1, 6);
  PlanRequest mesh = all_reduce(Algorithm::mesh);
  const auto squarest = plans.plan(mesh);
  EXPECT_EQ(squarest->spec.grid, (schedule::GridShape{.rows = 2, .columns = 3, .torus = true}));
  for (const schedule::GridShape& grid :
       {schedule::GridShape{.rows = 2, .columns = 3}, schedule::GridShape{.rows = 3, .columns = 2},
        schedule::GridShape{.rows = 1, .columns = 6, .torus = true}}) {
    mesh.grid = grid;
    const auto plan = plans.plan(mesh);
    EXPECT_EQ(plan->spec.grid, grid);
    EXPECT_NE(plan->contract, squarest->contract);
  }
}

TEST(Planner, AllRanksPromiseTheSame) {
  const auto first = planner(0).plan(all_reduce());
  for (Rank rank : {1, 2}) {
    const auto other = planner(rank).plan(all_reduce());
    EXPECT_EQ(other->contract, first->contract);
    EXPECT_EQ(other->digest, first->digest);
    EXPECT_EQ(other->notice, first->notice);
  }
}

TEST(Planner, WhatAnOperationIgnoresIsNoPartOfItsContract) {
  const auto contract_of = [](Op op, DType dtype, ReduceOp reduce, Rank root) {
    return planner()
        .plan(
            {.op = op, .dtype = dtype, .reduce = reduce, .count = op == Op::barrier ? 0u : 12u, .root = root})
        ->contract;
  };
  EXPECT_EQ(contract_of(Op::all_gather, DType::fp32, ReduceOp::max, 2),
            contract_of(Op::all_gather, DType::fp32, ReduceOp::sum, 0));
  EXPECT_EQ(contract_of(Op::barrier, DType::bf16, ReduceOp::sum, 1),
            contract_of(Op::barrier, DType::fp32, ReduceOp::sum, 0));
  EXPECT_NE(contract_of(Op::broadcast, DType::fp32, ReduceOp::sum, 2),
            contract_of(Op::broadcast, DType::fp32, ReduceOp::sum, 0));
  EXPECT_NE(contract_of(Op::all_reduce, DType::fp32, ReduceOp::max, 0),
            contract_of(Op::all_reduce, DType::fp32, ReduceOp::sum, 0));
}

TEST(Planner, AHierarchyIsExactOnHostsOfOnePowerOfTwo) {
  PlanRequest exact = all_reduce(Algorithm::hierarchical);
  exact.exact = true;
  Planner on_twos(0, Topology{.host_of = {0, 0, 1, 1}}, LinkModel{});
  EXPECT_EQ(on_twos.plan(exact)->spec.algorithm, Algorithm::hierarchical);
  Planner on_threes(0, Topology{.host_of = {0, 0, 0, 1, 1, 1}}, LinkModel{});
  EXPECT_THAT(test::error_of<UsageError>([&] { on_threes.plan(exact); }),
              HasSubstr("hierarchical(direct,direct) cannot give exact results here"));
}

TEST(Planner, AnAverageIsDividedByWhatWasAdded) {
  PlanRequest average = all_reduce();
  average.reduce = ReduceOp::average;
  EXPECT_EQ(planner().plan(average)->divide_by, 3u);
  average.pieces = {{{0, 4}, {4, 2}}, {}, {{6, 2}}};
  EXPECT_EQ(planner().plan(average)->divide_by, 8u) << "lanes, not ranks";
  EXPECT_EQ(planner().plan(all_reduce())->divide_by, 1u);
}

TEST(Planner, SaysWhyARequestMakesNoSense) {
  const auto error_of = [](const PlanRequest& request) -> std::string {
    try {
      planner().plan(request);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  PlanRequest exact_ring = all_reduce(Algorithm::ring);
  exact_ring.exact = true;
  EXPECT_THAT(error_of(exact_ring), HasSubstr("ring cannot give exact results"));
  PlanRequest nested = all_reduce(Algorithm::hierarchical);
  nested.inner = Algorithm::hierarchical;
  EXPECT_THAT(error_of(nested), HasSubstr("cannot be part of a hierarchy"));
  PlanRequest rootless = all_reduce();
  rootless.op = Op::broadcast;
  rootless.root = 9;
  EXPECT_THAT(error_of(rootless), HasSubstr("no rank 9"));
  PlanRequest on_a_grid = all_reduce(Algorithm::mesh);
  for (const schedule::GridShape& grid :
       {schedule::GridShape{.rows = 2, .columns = 2}, schedule::GridShape{.rows = 1, .columns = 1}}) {
    on_a_grid.grid = grid;
    EXPECT_THAT(error_of(on_a_grid), HasSubstr("does not hold 3 ranks"));
  }
  PlanRequest huge = all_reduce();
  huge.count = ~std::size_t{0};
  EXPECT_THAT(error_of(huge), HasSubstr("more than memory can address"));
}

}  // namespace
}  // namespace lockstep::comm
