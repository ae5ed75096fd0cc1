// SPDX-License-Identifier: Apache-2.0
//
// Who talks to whom, and how evenly: what distinguishes the algorithms beyond right results.
#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/generate.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

std::set<Rank> receivers_of(const Program& program) {
  std::set<Rank> receivers;
  for (const Round& round : program.rounds) {
    for (const Move& move : round) receivers.insert(move.send_to.begin(), move.send_to.end());
  }
  return receivers;
}

std::size_t sent_to(const Program& program, const std::set<Rank>& peers) {
  std::size_t elements = 0;
  for (const Round& round : program.rounds) {
    for (const Move& move : round) {
      for (Rank peer : move.send_to) elements += peers.contains(peer) ? elements_of(move) : 0;
    }
  }
  return elements;
}

TEST(RingGenerate, SendsOnlyToTheNextRank) {
  for (Op op : kAllOps) {
    if (op == Op::all_to_all) continue;  // all_to_all_generate_test.cpp
    for (const Program& program : programs_of(flat_spec(op, Algorithm::ring, 7, 50))) {
      for (Rank peer : receivers_of(program)) EXPECT_EQ(peer, (program.rank + 1) % 7) << name_of(op);
    }
  }
}

// The children of a rank in the two trees: whom it sends each half on the way down.
std::vector<std::size_t> children_by_tree(const Program& program, std::size_t count) {
  std::vector<std::size_t> children(2, 0);
  for (const Move& move : program.rounds.back()) {
    const Slice& slice = move.into ? *move.into : move.sources.front().slice;
    children[slice.range.begin < chunk_range(count, 2, 0).end ? 0 : 1] += move.send_to.size();
  }
  return children;
}

TEST(TreeGenerate, NobodyHasChildrenInBothTrees) {
  for (int world = 2; world <= 70; ++world) {
    for (const Program& program : programs_of(flat_spec(Op::all_reduce, Algorithm::tree, world, 10))) {
      const std::vector<std::size_t> children = children_by_tree(program, 10);
      EXPECT_EQ(std::min(children[0], children[1]), 0U) << "world " << world << " rank " << program.rank;
      EXPECT_LE(std::max(children[0], children[1]), 2U) << "world " << world << " rank " << program.rank;
    }
  }
}

TEST(TreeGenerate, EveryOperationStaysOnTheEdgesOfTheTrees) {
  for (int world = 2; world <= 20; ++world) {
    const std::vector<Program> all_reduce =
        programs_of(flat_spec(Op::all_reduce, Algorithm::tree, world, 200));
    for (Op op : {Op::reduce_scatter, Op::all_gather, Op::all_to_all}) {
      for (const Program& program : programs_of(flat_spec(op, Algorithm::tree, world, 200))) {
        const std::set<Rank> edges = receivers_of(all_reduce[static_cast<std::size_t>(program.rank)]);
        for (Rank peer : receivers_of(program)) {
          EXPECT_TRUE(edges.contains(peer)) << name_of(op) << ": " << program.rank << " to " << peer;
        }
      }
    }
  }
}

TEST(TreeGenerate, SegmentsFollowEachOtherInOneRound) {
  CollectiveSpec spec = flat_spec(Op::broadcast, Algorithm::tree, 6, 40);
  spec.segment_elements = 3;
  for (const Program& program : programs_of(spec)) {
    ASSERT_EQ(program.rounds.size(), 1U);
    EXPECT_EQ(program.rounds[0].size(), 14U);  // two halves of 20
  }
}

TEST(MeshGenerate, TalksOnlyToNeighbours) {
  for (const GridShape& grid : grids_up_to(24)) {
    for (Op op : kAllOps) {
      if (!supports(Algorithm::mesh, op)) continue;
      CollectiveSpec spec = flat_spec(op, Algorithm::mesh, grid.rows * grid.columns, 60);
      spec.grid = grid;
      spec.root = spec.world / 2;
      for (const Program& program : programs_of(spec)) {
        for (Rank peer : receivers_of(program)) {
          const int down = std::abs(peer / grid.columns - program.rank / grid.columns);
          const int right = std::abs(peer % grid.columns - program.rank % grid.columns);
          const bool wraps = grid.torus && (down == grid.rows - 1 || right == grid.columns - 1);
          EXPECT_TRUE(down + right == 1 || (wraps && std::min(down, right) == 0))
              << describe(spec) << ": " << program.rank << " to " << peer;
        }
      }
    }
  }
}

TEST(HierarchicalGenerate, CrossesHostsWithOneShareEach) {
  CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::hierarchical, 12, 1200);
  spec.ranks_per_host = {4, 4, 4};
  spec.outer = Algorithm::ring;
  for (const Program& program : programs_of(spec)) {
    std::set<Rank> elsewhere;
    for (Rank peer = 0; peer < 12; ++peer) {
      if (peer / 4 != program.rank / 4) elsewhere.insert(peer);
    }
    // A ring over 3 hosts of the quarter of the elements that this seat owns.
    EXPECT_EQ(sent_to(program, elsewhere), 2U * 2U * 1200U / 4U / 3U) << program.rank;
  }
}

TEST(HierarchicalGenerate, OnlyOwnersCrossUnevenHosts) {
  CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::hierarchical, 7, 100);
  spec.ranks_per_host = {2, 5};
  for (const Program& program : programs_of(spec)) {
    const int host = program.rank < 2 ? 0 : 1;
    const int seat = program.rank - 2 * host;
    const std::set<Rank> elsewhere = host == 0 ? std::set<Rank>{2, 3, 4, 5, 6} : std::set<Rank>{0, 1};
    EXPECT_EQ(sent_to(program, elsewhere), seat < 2 ? 50U : 0U) << program.rank;
  }
}

TEST(HierarchicalGenerate, EqualHostsOfExactPartsAddInTheCanonicalOrder) {
  CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::hierarchical, 16, 64);
  spec.ranks_per_host = {4, 4, 4, 4};
  std::vector<Program> programs = programs_of(spec);
  spec.algorithm = Algorithm::direct;  // which the checker holds to the canonical order
  const CheckResult result = check_without_formulas(spec, programs);
  EXPECT_FALSE(result.violation) << result.violation->to_string();
}

TEST(Generate, EqualSpecsGiveEqualPrograms) {
  const CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::halving_doubling, 13, 77);
  EXPECT_EQ(programs_of(spec), programs_of(spec));
}

}  // namespace
}  // namespace lockstep::schedule::testing
