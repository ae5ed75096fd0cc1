// SPDX-License-Identifier: Apache-2.0
//
// Proves every algorithm for every operation it supports, over all worlds and shapes up to a size, and
// compares what the programs cost with the formulas.
#include <compare>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/mesh/lanes.h"

#include "tests/schedule/proofs.h"
#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

constexpr int kLargestFlatWorld = 40;
constexpr int kLargestShape = 64;

class FlatProof : public ::testing::TestWithParam<Algorithm> {};

TEST_P(FlatProof, HoldsForAllWorldsAndCounts) {
  Proofs proofs;
  for (const Op op : kAllOps) {
    if (!supports(GetParam(), op)) continue;
    for (int world = 1; world <= kLargestFlatWorld; ++world) {
      for (const std::size_t count : counts_for(world)) {
        proofs.prove_with_roots(flat_spec(op, GetParam(), world, count));
      }
    }
  }
}

TEST_P(FlatProof, HoldsForSegments) {
  Proofs proofs;
  for (const Op op : kAllOps) {
    if (!supports(GetParam(), op)) continue;
    for (int world = 1; world <= 12; ++world) {
      for (const std::size_t segment : {1, 3, 7, 100}) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{50}}) {
          CollectiveSpec spec = flat_spec(op, GetParam(), world, count);
          spec.segment_elements = segment;
          proofs.prove_with_roots(spec);
        }
      }
    }
  }
}

std::string name_of_parameter(const ::testing::TestParamInfo<Algorithm>& info) {
  return std::string(name_of(info.param));
}

INSTANTIATE_TEST_SUITE_P(Every, FlatProof, ::testing::ValuesIn(kFlatAlgorithms), name_of_parameter);

// A count decides how an operation divides its elements. Blocks of all_to_all are never divided: there counts
// take turns from shape to shape.
std::vector<std::size_t> counts_in_turn(Op op, int world, std::size_t turn) {
  const std::vector<std::size_t> counts = counts_for(world);
  if (op != Op::all_to_all) return counts;
  return {counts[turn % counts.size()]};
}

TEST(MeshProof, HoldsForAllGrids) {
  Proofs proofs;
  std::size_t turn = 0;
  for (const GridShape& grid : grids_up_to(kLargestShape)) {
    const int world = grid.rows * grid.columns;
    turn += grid.torus ? 0 : 1;
    for (const Op op : kAllOps) {
      if (!supports(Algorithm::mesh, op)) continue;
      for (const std::size_t count : counts_in_turn(op, world, turn)) {
        CollectiveSpec spec = flat_spec(op, Algorithm::mesh, world, count);
        spec.grid = grid;
        proofs.prove_with_roots(spec);
      }
    }
  }
}

TEST(MeshProof, HoldsForSegments) {
  Proofs proofs;
  for (const GridShape& grid : grids_up_to(12)) {
    for (const Op op : kAllOps) {
      if (!supports(Algorithm::mesh, op)) continue;
      for (const std::size_t segment : {1, 3, 100}) {
        CollectiveSpec spec = flat_spec(op, Algorithm::mesh, grid.rows * grid.columns, 50);
        spec.grid = grid;
        spec.segment_elements = segment;
        proofs.prove_with_roots(spec);
      }
    }
  }
}

// Beyond what is swept: as far as programs are proved before they run, and a little further.
TEST(LargeWorldProof, HoldsForFlatAlgorithmsAndGrids) {
  Proofs proofs;
  for (const int world : {48, 64, 96, 127, 128, 255}) {
    for (const Algorithm algorithm : kPartAlgorithms) {
      for (const Op op : kAllOps) {
        if (supports(algorithm, op)) proofs.prove(large_spec(flat_spec(op, algorithm, world, 0)));
      }
    }
  }
}

TEST(LargeWorldProof, HoldsForHosts) {
  Proofs proofs;
  for (const std::vector<int>& hosts :
       {std::vector<int>(12, 8), std::vector<int>(8, 16), std::vector<int>{40, 50, 37}}) {
    for (const Op op : kAllOps) {
      for (const Algorithm part : kPartAlgorithms) {
        if (!supports(part, op)) continue;
        proofs.prove(large_spec(hierarchical_spec(op, hosts, part, part)));
        proofs.prove(large_spec(hierarchical_spec(op, hosts, Algorithm::direct, part)));
      }
    }
  }
}

class HierarchicalProof : public ::testing::TestWithParam<Algorithm> {
 protected:
  // Every operation with this algorithm inside hosts and each that can do it between them.
  template <typename Visit>
  void for_each_pair(const std::vector<int>& hosts, Visit visit) {
    for (const Op op : kAllOps) {
      if (!supports(Algorithm::hierarchical, op)) continue;
      for (const Algorithm outer : kPartAlgorithms) {
        if (supports(outer, op)) visit(hierarchical_spec(op, hosts, GetParam(), outer));
      }
    }
  }
};

TEST_P(HierarchicalProof, HoldsForEveryHostShapeOfSmallWorlds) {
  Proofs proofs;
  for (int world = 1; world <= 6; ++world) {
    for (const std::vector<int>& hosts : all_host_shapes(world)) {
      for_each_pair(hosts, [&](CollectiveSpec spec) {
        for (const std::size_t count : counts_for(world)) {
          spec.count = count;
          proofs.prove_with_roots(spec);
        }
      });
    }
  }
}

// Every kind of count with every kind of root, for each operation and algorithm between hosts.
class MetKinds {
 public:
  void meet(const CollectiveSpec& spec) {
    met_[{spec.op, spec.outer}].emplace(kind_of_count(spec), kind_of_root(spec));
  }

  void expect_all() const {
    EXPECT_FALSE(met_.empty());
    for (const auto& [pair, kinds] : met_) {
      const auto [op, outer] = pair;
      const std::size_t kinds_of_roots = op == Op::broadcast || op == Op::reduce ? 4 : 1;
      EXPECT_EQ(kinds.size(), 4 * kinds_of_roots)
          << name_of(op) << " with " << name_of(outer) << " between hosts";
    }
  }

 private:
  enum class CountKind { zero, smaller_than_world, divides, does_not_divide };
  enum class RootKind { first_of_all, first_on_its_host, on_first_host, elsewhere };

  static CountKind kind_of_count(const CollectiveSpec& spec) {
    const auto ranks = static_cast<std::size_t>(spec.world);
    if (spec.count == 0) return CountKind::zero;
    if (spec.count < ranks) return CountKind::smaller_than_world;
    return spec.count % ranks == 0 ? CountKind::divides : CountKind::does_not_divide;
  }

  static RootKind kind_of_root(const CollectiveSpec& spec) {
    Rank seat = spec.root;
    std::size_t host = 0;
    while (seat >= spec.ranks_per_host[host]) seat -= spec.ranks_per_host[host++];
    if (host == 0) return seat == 0 ? RootKind::first_of_all : RootKind::on_first_host;
    return seat == 0 ? RootKind::first_on_its_host : RootKind::elsewhere;
  }

  std::map<std::pair<Op, Algorithm>, std::set<std::pair<CountKind, RootKind>>> met_;
};

// Counts and roots take turns from shape to shape, and pairs are one turn apart: each shape and pair meets
// one of them. For all_to_all, whose three steps only hand parcels to each other, algorithms between hosts
// take turns too.
TEST_P(HierarchicalProof, HoldsForShapesOfLargeWorlds) {
  Proofs proofs;
  MetKinds kinds;
  std::size_t first_turn = 0;
  for (const std::vector<int>& hosts : host_shapes_up_to(kLargestShape)) {
    const std::size_t shape = first_turn++;
    std::size_t next_turn = shape;
    for_each_pair(hosts, [&](CollectiveSpec spec) {
      const std::size_t turn = next_turn++;
      const std::vector<std::size_t> counts = counts_for(spec.world);
      const std::vector<Rank> roots = roots_for(spec.op, spec.world);
      spec.count = counts[turn % counts.size()];
      if (spec.op == Op::all_to_all) {
        if (spec.outer != kPartAlgorithms[shape % kPartAlgorithms.size()]) return;
        spec.count = counts[shape / kPartAlgorithms.size() % counts.size()];
      }
      spec.root = roots[turn / counts.size() % roots.size()];
      kinds.meet(spec);
      proofs.prove(spec);
    });
  }
  kinds.expect_all();
}

TEST_P(HierarchicalProof, HoldsForSegments) {
  Proofs proofs;
  for (const std::vector<int>& hosts : {std::vector{3, 3}, std::vector{2, 1, 4}, std::vector{1, 5}}) {
    for_each_pair(hosts, [&](CollectiveSpec spec) {
      spec.count = 50;
      spec.segment_elements = 3;
      proofs.prove_with_roots(spec);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Every, HierarchicalProof, ::testing::ValuesIn(kPartAlgorithms), name_of_parameter);

void prove_lanes(Proofs& proofs, const LaneOwnership& ownership) {
  for (const Op op : {Op::all_reduce, Op::reduce_scatter}) {
    for (const std::size_t count : counts_for(ownership.world())) {
      proofs.prove(lane_spec(op, ownership, count));
    }
  }
}

TEST(LaneProof, HoldsForEvenOwnership) {
  Proofs proofs;
  for (int lanes = 1; lanes <= 64; lanes *= 2) {
    for (int world = 1; world <= kLargestFlatWorld; ++world)
      prove_lanes(proofs, even_ownership(lanes, world));
  }
}

TEST(LaneProof, HoldsForEveryOwnershipOfAFewLanes) {
  Proofs proofs;
  for (const int lanes : {1, 2, 4, 8}) {
    for (int a = 0; a <= lanes; ++a) {
      for (int b = a; b <= lanes; ++b) {
        prove_lanes(proofs, {.first_lane = {0, a, b, lanes}});
        for (int c = b; c <= lanes; ++c) prove_lanes(proofs, {.first_lane = {0, a, b, c, lanes}});
      }
    }
  }
}

TEST(LaneProof, HoldsForRandomOwnership) {
  Proofs proofs;
  std::mt19937 random(7);
  for (int turn = 0; turn < 400; ++turn) {
    const int lanes = 1 << (random() % 7);
    std::vector<double> weights(1 + random() % 24);
    for (double& weight : weights) weight = random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 100);
    weights[random() % weights.size()] = 1.0;
    prove_lanes(proofs, weighted_ownership(lanes, weights));
  }
}

// A rank may bring its lanes as smaller pieces than it must.
TEST(LaneProof, HoldsForPiecesThatCouldBeOne) {
  Proofs proofs;
  for (const int lanes : {2, 4, 8, 16}) {
    for (int world = 1; world <= 9; ++world) {
      const LaneOwnership ownership = even_ownership(lanes, world);
      for (const Op op : {Op::all_reduce, Op::reduce_scatter}) {
        proofs.prove(single_lane_spec(op, ownership, 23));
      }
    }
  }
}

TEST(LaneProof, HoldsInParts) {
  Proofs proofs;
  for (const int lanes : {4, 8}) {
    for (int a = 0; a <= lanes; ++a) {
      for (int b = a; b <= lanes; ++b) {
        for (const std::size_t part : {1, 2, 5}) {
          for (const Op op : {Op::all_reduce, Op::reduce_scatter}) {
            for (const std::size_t count : {0, 1, 2, 3, 9, 23}) {
              CollectiveSpec spec = single_lane_spec(op, {.first_lane = {0, a, b, lanes}}, count);
              spec.segment_elements = part;
              proofs.prove(spec);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::schedule::testing
