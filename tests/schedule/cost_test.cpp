// SPDX-License-Identifier: Apache-2.0
//
// The formulas of docs/algorithms.md against what the checker counts in the programs. The proofs of
// proof_test.cpp compare them too, for shapes up to 64 ranks; here are segments, every root, and what is
// quick.
#include "lockstep/schedule/collective/cost.h"

#include <vector>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"

#include "tests/schedule/formulas.h"
#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

void expect_formula_holds(const CollectiveSpec& spec) {
  const CheckResult counted = check(spec, programs_of(spec));
  ASSERT_FALSE(counted.violation) << describe(spec) << ": " << counted.violation->to_string();
  ASSERT_EQ(difference_from_formulas(spec), "") << describe(spec);
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
      if (op == Op::all_to_all && world > 30) continue;  // those take long
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
  std::size_t first_turn = 0;
  for (const std::vector<int>& hosts : host_shapes_up_to(24)) {
    const std::size_t shape = first_turn++;
    std::size_t turn = shape;
    for (Op op : kAllOps) {
      for (Algorithm inner : kPartAlgorithms) {
        for (Algorithm outer : kPartAlgorithms) {
          if (!supports(outer, op)) continue;
          if (op == Op::all_to_all && outer != kPartAlgorithms[shape % kPartAlgorithms.size()]) continue;
          CollectiveSpec spec = hierarchical_spec(op, hosts, inner, outer);
          const std::vector<std::size_t> counts = counts_for(spec.world);
          spec.count = counts[turn++ % counts.size()];
          spec.root = roots_for(op, spec.world).back();
          ASSERT_NO_FATAL_FAILURE(expect_formula_holds(spec));
        }
      }
    }
  }
}

// Lanes even, uneven with some ranks that own none, and all on one rank.
TEST(Cost, LaneTrees) {
  for (int world = 1; world <= 20; ++world) {
    const auto ranks = static_cast<std::size_t>(world);
    std::vector<double> uneven(ranks), one(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) uneven[rank] = static_cast<double>(rank * 5 % 4);
    uneven.back() = 7;
    one[ranks / 2] = 1;
    for (int lanes : {1, 4, 16, 64}) {
      for (const LaneOwnership& ownership : {even_ownership(lanes, world), weighted_ownership(lanes, uneven),
                                             weighted_ownership(lanes, one)}) {
        for (std::size_t count : counts_for(world)) {
          for (Op op : {Op::all_reduce, Op::reduce_scatter}) {
            ASSERT_NO_FATAL_FAILURE(expect_formula_holds(lane_spec(op, ownership, count)));
            ASSERT_NO_FATAL_FAILURE(expect_formula_holds(single_lane_spec(op, ownership, count)));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::schedule::testing
