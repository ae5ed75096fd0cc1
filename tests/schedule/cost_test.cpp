// SPDX-License-Identifier: Apache-2.0
//
// The formulas of docs/algorithms.md against what the checker counts in the programs.
#include "lockstep/schedule/collective/cost.h"

#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

void expect_formula_holds(const CollectiveSpec& spec) {
  const CheckResult counted = check(spec, programs_of(spec));
  ASSERT_FALSE(counted.violation) << describe(spec) << ": " << counted.violation->to_string();
  const PredictedCost predicted = predict_cost(spec);
  const std::vector<std::size_t>& combined = counted.cost.elements_combined;
  ASSERT_EQ(predicted.elements_sent, counted.cost.elements_sent) << describe(spec);
  ASSERT_EQ(predicted.elements_combined, std::accumulate(combined.begin(), combined.end(), std::size_t{0}))
      << describe(spec);
  if (spec.algorithm == Algorithm::hierarchical) {
    ASSERT_GE(predicted.depth, counted.cost.depth) << describe(spec);
  } else {
    ASSERT_EQ(predicted.depth, counted.cost.depth) << describe(spec);
  }
}

TEST(Cost, FlatAlgorithms) {
  for (Algorithm algorithm : kFlatAlgorithms) {
    for (Op op : kAllOps) {
      if (!supports(algorithm, op)) continue;
      for (int world = 1; world <= 40; ++world) {
        for (std::size_t count : counts_for(world)) {
          CollectiveSpec spec = flat_spec(op, algorithm, world, count);
          spec.root = op == Op::broadcast || op == Op::reduce ? world / 2 : 0;
          spec.segment_elements = count % 7;
          ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
        }
      }
    }
  }
}

TEST(Cost, EveryRoot) {
  for (Algorithm algorithm : kFlatAlgorithms) {
    for (Op op : {Op::broadcast, Op::reduce}) {
      for (int world = 1; world <= 12; ++world) {
        for (Rank root = 0; root < world; ++root) {
          for (std::size_t count : {1, 5, 50}) {
            CollectiveSpec spec = flat_spec(op, algorithm, world, count);
            spec.root = root;
            ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
          }
        }
      }
    }
  }
}

TEST(Cost, Grids) {
  for (const GridShape& grid : grids_up_to(64)) {
    const int world = grid.rows * grid.columns;
    for (Op op : kAllOps) {
      if (!supports(Algorithm::mesh, op)) continue;
      for (std::size_t count : {std::size_t{1}, static_cast<std::size_t>(2 * world + 3)}) {
        CollectiveSpec spec = flat_spec(op, Algorithm::mesh, world, count);
        spec.grid = grid;
        spec.root = op == Op::broadcast || op == Op::reduce ? world / 3 : 0;
        ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
      }
    }
  }
}

TEST(Cost, Hosts) {
  constexpr std::array kParts = {Algorithm::ring,   Algorithm::tree,     Algorithm::halving_doubling,
                                 Algorithm::direct, Algorithm::one_shot, Algorithm::mesh};
  const std::vector<std::vector<int>> shapes = {{1}, {5}, {1, 1, 1}, {2, 2}, {3, 1}, {4, 4, 4}, {5, 2, 7}};
  for (const std::vector<int>& hosts : shapes) {
    const int world = std::accumulate(hosts.begin(), hosts.end(), 0);
    for (Op op : kAllOps) {
      for (Algorithm inner : kParts) {
        for (Algorithm outer : kParts) {
          if (op == Op::all_to_all || !supports(outer, op)) continue;
          for (std::size_t count : {0, 1, 37}) {
            CollectiveSpec spec = flat_spec(op, Algorithm::hierarchical, world, count);
            spec.ranks_per_host = hosts;
            spec.inner = inner;
            spec.outer = outer;
            spec.root = op == Op::broadcast || op == Op::reduce ? world - 1 : 0;
            ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
          }
        }
      }
    }
  }
}

TEST(Cost, LaneTrees) {
  for (int world : {1, 2, 3, 5}) {
    for (int lanes : {1, 4, 16}) {
      for (std::size_t count : {0, 1, 4, 29}) {
        for (Op op : {Op::all_reduce, Op::reduce_scatter}) {
          CollectiveSpec spec = flat_spec(op, Algorithm::direct, world, count);
          const LaneOwnership owners = even_ownership(lanes, world);
          spec.pieces.resize(world);
          for (Rank rank = 0; rank < world; ++rank) {
            for (int lane = owners.first_lane[rank]; lane < owners.first_lane[rank + 1]; ++lane) {
              spec.pieces[rank].push_back({lane, 1});
            }
          }
          ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::schedule::testing
