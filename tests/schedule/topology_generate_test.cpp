// SPDX-License-Identifier: Apache-2.0
//
// Who talks to whom, and how evenly: what distinguishes the algorithms beyond right results.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/generate.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::array kExactAlgorithms = {Algorithm::direct, Algorithm::one_shot, Algorithm::halving_doubling};

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

// Whatever the spec says of itself: by the checker, which holds direct to the canonical order.
bool adds_in_the_canonical_order(const CollectiveSpec& spec) {
  CollectiveSpec held = spec;
  held.algorithm = Algorithm::direct;
  const CheckResult result = check_without_formulas(held, programs_of(spec));
  if (!result.violation) return true;
  EXPECT_THAT(result.violation->reason, HasSubstr("not in the canonical order")) << describe(spec);
  return false;
}

void expect_exact_where_canonical(const std::vector<int>& hosts) {
  for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::reduce}) {
    for (const Algorithm inner : kExactAlgorithms) {
      for (const Algorithm outer : kExactAlgorithms) {
        if (!supports(outer, op)) continue;
        CollectiveSpec spec = hierarchical_spec(op, hosts, inner, outer);
        spec.count = static_cast<std::size_t>(spec.world) + 3;
        for (const Rank root : roots_for(op, spec.world)) {
          spec.root = root;
          EXPECT_EQ(is_exact(spec), adds_in_the_canonical_order(spec)) << describe(spec);
        }
      }
    }
  }
}

TEST(HierarchicalGenerate, IsExactWhereItsTreeIsTheCanonicalOne) {
  for (int world = 1; world <= 7; ++world) {
    for (const auto& hosts : all_host_shapes(world)) expect_exact_where_canonical(hosts);
  }
  for (const auto& hosts : std::vector<std::vector<int>>{{4, 4, 4, 4},
                                                         {4, 4, 4, 3},
                                                         {4, 4, 8},
                                                         {8, 8, 1},
                                                         {2, 2, 2, 2, 2, 1},
                                                         {3, 3, 3, 3},
                                                         {4, 8},
                                                         {8, 4, 4}}) {
    expect_exact_where_canonical(hosts);
  }
}

TEST(HierarchicalGenerate, OrdersOfTheirOwnMakeNoCanonicalOne) {
  for (const Algorithm own : {Algorithm::ring, Algorithm::tree}) {
    for (CollectiveSpec spec : {hierarchical_spec(Op::all_reduce, {4, 4, 4, 4}, own, Algorithm::direct),
                                hierarchical_spec(Op::all_reduce, {4, 4, 4, 4}, Algorithm::direct, own)}) {
      spec.count = 64;
      EXPECT_FALSE(is_exact(spec)) << describe(spec);
      EXPECT_FALSE(adds_in_the_canonical_order(spec)) << describe(spec);
    }
  }
}

// That a mesh of 2 x 2 adds in this order is no promise of the mesh.
TEST(HierarchicalGenerate, OnlyExactPartsPromiseTheCanonicalOrder) {
  for (const Algorithm inner : kPartAlgorithms) {
    for (const Algorithm outer : kPartAlgorithms) {
      EXPECT_EQ(is_exact(hierarchical_spec(Op::all_reduce, {4, 4, 4, 4}, inner, outer)),
                is_exact(inner) && is_exact(outer));
    }
  }
}

TEST(HierarchicalGenerate, HostsOfOnePowerOfTwoMakeTheCanonicalTree) {
  const auto exact_on = [](const std::vector<int>& hosts) {
    return is_exact(hierarchical_spec(Op::all_reduce, hosts, Algorithm::direct, Algorithm::direct));
  };
  for (const auto& hosts : std::vector<std::vector<int>>{{3},
                                                         {2, 2},
                                                         {2, 2, 2},
                                                         {4, 4, 4, 4, 4},
                                                         {8, 8, 5},
                                                         {1, 1, 1},
                                                         {4, 3},
                                                         {16, 16, 16, 16, 16, 16, 1}}) {
    EXPECT_TRUE(exact_on(hosts)) << ::testing::PrintToString(hosts);
  }
  for (const auto& hosts : std::vector<std::vector<int>>{{3, 3}, {1, 2}, {3, 1}, {2, 4}, {4, 2, 4}, {6, 6}}) {
    EXPECT_FALSE(exact_on(hosts)) << ::testing::PrintToString(hosts);
  }
}

// The phases are what predict_cost() adds up.
TEST(HierarchicalGenerate, PhasesAreInsideHostsOrBetweenThem) {
  CollectiveSpec spec = hierarchical_spec(Op::all_reduce, {4, 4, 4}, Algorithm::ring, Algorithm::direct);
  spec.count = 1200;
  const std::vector<PhaseCost> phases = predict_phases(spec);
  ASSERT_EQ(phases.size(), 3U);
  std::vector<std::size_t> sent(12, 0);
  int depth = 0;
  for (const PhaseCost& phase : phases) {
    for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank] += phase.cost.elements_sent[rank];
    depth += phase.cost.depth;
  }
  EXPECT_EQ(sent, predict_cost(spec).elements_sent);
  EXPECT_EQ(depth, predict_cost(spec).depth);
  EXPECT_EQ(phases[0].op, Op::reduce_scatter);
  EXPECT_EQ(phases[0].world, 4);
  EXPECT_FALSE(phases[0].between_hosts);
  EXPECT_EQ(phases[1].op, Op::all_reduce);
  EXPECT_EQ(phases[1].world, 3);
  EXPECT_TRUE(phases[1].between_hosts);
  EXPECT_EQ(phases[2].op, Op::all_gather);
  EXPECT_FALSE(phases[2].between_hosts);
}

TEST(HierarchicalGenerate, ALevelOfSingleRanksHasNoPhase) {
  for (const Op op : kAllOps) {
    if (op == Op::all_to_all) continue;
    CollectiveSpec apart = hierarchical_spec(op, {1, 1, 1}, Algorithm::direct, Algorithm::direct);
    apart.count = op == Op::barrier ? 0 : 30;
    for (const PhaseCost& phase : predict_phases(apart)) EXPECT_TRUE(phase.between_hosts) << describe(apart);
    CollectiveSpec together = apart;
    together.ranks_per_host = {3};
    for (const PhaseCost& phase : predict_phases(together)) EXPECT_FALSE(phase.between_hosts);
    EXPECT_FALSE(predict_phases(together).empty()) << describe(together);
  }
}

TEST(Generate, EqualSpecsGiveEqualPrograms) {
  const CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::halving_doubling, 13, 77);
  EXPECT_EQ(programs_of(spec), programs_of(spec));
}

}  // namespace
}  // namespace lockstep::schedule::testing
