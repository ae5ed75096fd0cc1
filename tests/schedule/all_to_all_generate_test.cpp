// SPDX-License-Identifier: Apache-2.0
//
// The ways of blocks: who talks to whom, in how many messages, and how much lies in scratch meanwhile.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/cost.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

constexpr std::size_t kBlock = 10;

// Messages that a rank sends, by receiver.
std::map<Rank, int> messages_of(const Program& program) {
  std::map<Rank, int> messages;
  for (const Round& round : program.rounds) {
    for (const Move& move : round) {
      for (Rank peer : move.send_to) ++messages[peer];
    }
  }
  return messages;
}

int all_messages_of(const Program& program) {
  int all = 0;
  for (const auto& [peer, number] : messages_of(program)) all += number;
  return all;
}

std::set<Rank> receivers_of(const Program& program) {
  std::set<Rank> receivers;
  for (const auto& [peer, number] : messages_of(program)) receivers.insert(peer);
  return receivers;
}

std::vector<std::size_t> blocks_sent(const CollectiveSpec& spec) {
  std::vector<std::size_t> sent = predict_cost(spec).elements_sent;
  for (std::size_t& elements : sent) elements /= spec.count;
  return sent;
}

std::size_t most_scratch_blocks(const CollectiveSpec& spec) {
  const CheckResult result = check(spec, programs_of(spec));
  EXPECT_FALSE(result.violation) << describe(spec) << ": " << result.violation->to_string();
  return std::ranges::max(result.cost.scratch_elements) / spec.count;
}

CollectiveSpec all_to_all(Algorithm algorithm, int world) {
  return flat_spec(Op::all_to_all, algorithm, world, kBlock);
}

TEST(AllToAll, DirectlyIsOneRoundWithoutScratch) {
  for (Algorithm algorithm : {Algorithm::direct, Algorithm::one_shot}) {
    for (const Program& program : programs_of(all_to_all(algorithm, 5))) {
      EXPECT_EQ(program.rounds.size(), 1U);
      EXPECT_EQ(program.buffer_elements, (std::vector<std::size_t>{50, 50}));
    }
  }
}

TEST(AllToAll, RoundARingGoesTheShorterWayInOneMessageForEachStep) {
  for (int world = 2; world <= 20; ++world) {
    const CollectiveSpec spec = all_to_all(Algorithm::ring, world);
    for (const Program& program : programs_of(spec)) {
      const std::set<Rank> neighbours = {(program.rank + 1) % world, (program.rank + world - 1) % world};
      for (const Rank peer : receivers_of(program)) EXPECT_TRUE(neighbours.contains(peer));
      EXPECT_LE(all_messages_of(program), 2 * (world / 2));
    }
    // Of all ways round a ring, the sum of the shortest ones.
    const auto least = static_cast<std::size_t>(world * world / 4);
    for (const std::size_t blocks : blocks_sent(spec)) EXPECT_EQ(blocks, least) << world;
    EXPECT_EQ(predict_cost(spec).depth, world / 2);
    EXPECT_LE(most_scratch_blocks(spec), static_cast<std::size_t>(2 * world)) << world;
  }
}

TEST(AllToAll, ByHalvingDoublingIsAMessageForEveryPowerOfTwo) {
  for (int world = 2; world <= 33; ++world) {
    const CollectiveSpec spec = all_to_all(Algorithm::halving_doubling, world);
    const int rounds = std::bit_width(static_cast<unsigned>(world - 1));
    std::size_t blocks = 0;
    for (int way = 1; way < world; ++way) {
      blocks += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(way)));
    }
    for (const Program& program : programs_of(spec)) {
      std::set<Rank> expected;
      for (int hop = 1; hop < world; hop *= 2) expected.insert((program.rank + hop) % world);
      EXPECT_EQ(receivers_of(program), expected);
      EXPECT_EQ(all_messages_of(program), rounds);
    }
    for (const std::size_t sent : blocks_sent(spec)) EXPECT_EQ(sent, blocks) << world;
    EXPECT_EQ(predict_cost(spec).depth, rounds);
    EXPECT_LE(most_scratch_blocks(spec), blocks + static_cast<std::size_t>(world / 2)) << world;
  }
}

TEST(AllToAll, OverTreesIsOneMessageAtMostForEveryEdgeAndDirection) {
  for (int world = 2; world <= 33; ++world) {
    const CollectiveSpec spec = all_to_all(Algorithm::tree, world);
    for (const Program& program : programs_of(spec)) {
      for (const auto& [peer, number] : messages_of(program)) {
        EXPECT_LE(number, 2) << "a neighbour in both trees";
      }
      EXPECT_LE(all_messages_of(program), 4);  // two children, and a parent in each tree
    }
    const int levels = std::bit_width(static_cast<unsigned>(world)) - 1;
    EXPECT_LE(predict_cost(spec).depth, 2 * levels);
    EXPECT_LE(most_scratch_blocks(spec), static_cast<std::size_t>(world * world)) << world;
  }
}

// The two trees carry about the same: the busiest rank sends less than one that is the root of a single tree.
TEST(AllToAll, OverTreesDividesTheWork) {
  for (int world : {8, 15, 16, 32, 40}) {
    const std::vector<std::size_t> sent = blocks_sent(all_to_all(Algorithm::tree, world));
    EXPECT_LE(std::ranges::max(sent), static_cast<std::size_t>(world * world * 3 / 8)) << world;
  }
}

TEST(AllToAll, OnATorusTakesFewerStepsThanOnAGrid) {
  CollectiveSpec spec = all_to_all(Algorithm::mesh, 20);
  spec.grid = {.rows = 4, .columns = 5, .torus = false};
  EXPECT_EQ(predict_cost(spec).depth, 3 + 4);
  spec.grid.torus = true;
  EXPECT_EQ(predict_cost(spec).depth, 2 + 2);
  // Along rows 4 blocks for each of 5 columns, along columns 5 for each of 4 rows.
  for (const std::size_t blocks : blocks_sent(spec)) EXPECT_EQ(blocks, 4U * 6U + 5U * 4U);
  for (const Program& program : programs_of(spec)) EXPECT_LE(all_messages_of(program), 4 + 4);
}

TEST(AllToAll, OfAHierarchyCrossesWithOneMessageForEachOtherHost) {
  CollectiveSpec spec = hierarchical_spec(Op::all_to_all, {4, 4, 4}, Algorithm::direct, Algorithm::direct);
  spec.count = kBlock;
  for (const Program& program : programs_of(spec)) {
    const std::map<Rank, int> messages = messages_of(program);
    for (Rank peer = 0; peer < spec.world; ++peer) {
      const bool talks =
          peer != program.rank && (peer / 4 == program.rank / 4 || peer % 4 == program.rank % 4);
      EXPECT_EQ(messages.contains(peer) ? messages.at(peer) : 0, talks ? 1 : 0)
          << program.rank << " to " << peer;
    }
  }
  // 3 blocks (one for each host) for 3 others inside, 4 blocks (one of each rank) for 2 other hosts.
  for (const std::size_t blocks : blocks_sent(spec)) EXPECT_EQ(blocks, 3U * 3U + 4U * 2U);
}

TEST(AllToAll, OfUnevenHostsGoesThroughTheirOwners) {
  CollectiveSpec spec = hierarchical_spec(Op::all_to_all, {2, 5}, Algorithm::ring, Algorithm::direct);
  spec.count = kBlock;
  for (const Program& program : programs_of(spec)) {
    const bool first_host = program.rank < 2;
    const int seat = program.rank - (first_host ? 0 : 2);
    std::set<Rank> across;
    for (const Rank peer : receivers_of(program)) {
      if ((peer < 2) != first_host) across.insert(peer);
    }
    const std::set<Rank> opposite = {first_host ? 2 + seat : seat};
    EXPECT_EQ(across, seat < 2 ? opposite : std::set<Rank>{}) << program.rank;
  }
}

}  // namespace
}  // namespace lockstep::schedule::testing
