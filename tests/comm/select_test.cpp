// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/select.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/algorithm_name.h"

namespace lockstep::comm {
namespace {

using schedule::Algorithm;
using schedule::CollectiveSpec;
using schedule::Op;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::array kOps = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                             Op::reduce,     Op::all_to_all,     Op::barrier};

CollectiveSpec spec_of(Op op, int world, std::size_t count) {
  CollectiveSpec spec;
  spec.op = op;
  spec.world = world;
  spec.count = count;
  return spec;
}

Topology hosts(std::vector<int> host_of) {
  return {.host_of = std::move(host_of)};
}

std::vector<Algorithm> ranking(Op op, std::size_t count, const Topology& topology, bool exact,
                               const LinkModel& model = {}) {
  std::vector<Algorithm> order;
  const CollectiveSpec wanted = spec_of(op, topology.world(), count);
  for (const Candidate& candidate : candidates(wanted, DType::fp32, topology, model, exact)) {
    order.push_back(candidate.spec.algorithm);
  }
  return order;
}

TEST(Topology, CountsTheRanksOfHostsThatFollowOneAnother) {
  EXPECT_THAT(hosts({0}).ranks_per_host(), ElementsAre(1));
  EXPECT_THAT(hosts({4, 4, 4}).ranks_per_host(), ElementsAre(3));
  EXPECT_THAT(hosts({0, 0, 1, 2, 2, 2}).ranks_per_host(), ElementsAre(2, 1, 3));
}

TEST(Topology, TakesScatteredRanksForHostsOfTheirOwn) {
  EXPECT_THAT(hosts({0, 1, 0}).ranks_per_host(), ElementsAre(1, 1, 1));
  EXPECT_TRUE(hosts({0, 1, 0}).is_scattered());
  for (const Topology& in_order : {hosts({0}), hosts({1, 1, 0}), hosts({0, 1, 2})}) {
    EXPECT_FALSE(in_order.is_scattered());
  }
}

// Elsewhere a hierarchy is one of its parts under another name.
TEST(Select, HierarchiesAreForSeveralHostsWithSeveralRanks) {
  for (const Op op : kOps) {
    for (const bool exact : {true, false}) {
      for (const auto& one_level : {hosts({0}), hosts({0, 0, 0, 0}), hosts({0, 1, 2, 3}), hosts({0, 1, 0})}) {
        EXPECT_THAT(ranking(op, 1'000'000, one_level, exact), Not(Contains(Algorithm::hierarchical)));
      }
    }
    EXPECT_THAT(ranking(op, 1'000'000, hosts({0, 0, 1}), false), Contains(Algorithm::hierarchical));
  }
}

TEST(Select, EveryCandidateIsValidAndCanDoTheOperation) {
  for (const Topology& topology : {hosts({0}), hosts({0, 0}), hosts({0, 0, 0, 1, 1}), hosts({0, 1, 0, 1})}) {
    for (Op op : kOps) {
      for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1'000'003}}) {
        const CollectiveSpec wanted = spec_of(op, topology.world(), op == Op::barrier ? 0 : count);
        const auto found = candidates(wanted, DType::bf16, topology, {}, true);
        ASSERT_FALSE(found.empty()) << name_of(op);
        for (const Candidate& one : found) {
          EXPECT_NO_THROW(schedule::validate(one.spec)) << name_of(op) << name_of(one.spec.algorithm);
          EXPECT_GE(one.total_us(), found.front().total_us());
        }
      }
    }
  }
}

TEST(Select, ExactReductionsGetOnlyTheCanonicalOrder) {
  const Topology four = hosts({0, 0, 1, 1});
  for (const Topology& topology : {four, hosts({0, 0, 0, 1, 1, 1}), hosts({0, 0, 0, 0, 1, 1, 1})}) {
    for (Op op : {Op::all_reduce, Op::reduce_scatter, Op::reduce}) {
      const CollectiveSpec wanted = spec_of(op, topology.world(), 1000);
      for (const Candidate& one : candidates(wanted, DType::fp32, topology, {}, true))
        EXPECT_TRUE(schedule::is_exact(one.spec)) << name_of(op) << name_of(one.spec.algorithm);
    }
  }
  // Of hosts of 3 a hierarchy adds in another order.
  EXPECT_THAT(ranking(Op::all_reduce, 1000, hosts({0, 0, 0, 1, 1, 1}), true),
              Not(Contains(Algorithm::hierarchical)));
  EXPECT_THAT(ranking(Op::all_reduce, 1000, four, false), Contains(Algorithm::ring));
  EXPECT_THAT(ranking(Op::all_gather, 1000, four, true), Contains(Algorithm::ring)) << "nothing is added";
}

// Through memory to one rank of the host for every share, so that each byte crosses once.
TEST(Select, LargeExactSumsOfSeveralRanksOnAHostAreHierarchies) {
  for (const Topology& topology :
       {hosts({0, 0, 1, 1}), hosts({0, 0, 0, 0, 1, 1, 1, 1}), hosts({0, 0, 1, 1, 2, 2})}) {
    for (const Op op : {Op::all_reduce, Op::reduce_scatter}) {
      EXPECT_EQ(ranking(op, 16'000'000, topology, true).front(), Algorithm::hierarchical) << name_of(op);
    }
  }
}

// Many small messages are dear, few large ones are slow, and a long chain waits.
TEST(Select, WhatRunsBetweenHostsFollowsTheModel) {
  std::vector<int> eight_of_two(16);
  for (std::size_t rank = 0; rank < 16; ++rank) eight_of_two[rank] = static_cast<int>(rank / 2);
  const auto outer_of = [&](std::size_t count, const LinkModel& model) {
    const CollectiveSpec wanted = spec_of(Op::all_reduce, 16, count);
    for (const Candidate& one : candidates(wanted, DType::fp32, hosts(eight_of_two), model, false)) {
      if (one.spec.algorithm == Algorithm::hierarchical) return one.spec.outer;
    }
    return Algorithm::hierarchical;
  };
  LinkModel dear;
  dear.network = {.latency_us = 1, .message_us = 100, .gigabytes_per_second = 2};
  LinkModel far;
  far.network = {.latency_us = 1000, .message_us = 0, .gigabytes_per_second = 2};
  EXPECT_EQ(outer_of(1, dear), Algorithm::halving_doubling);
  EXPECT_EQ(outer_of(1, far), Algorithm::one_shot);
  EXPECT_EQ(outer_of(16'000'000, far), Algorithm::direct);
}

TEST(Select, ExactnessOfAHierarchyIsAMatterOfItsHosts) {
  const AlgorithmName hierarchy{.algorithm = Algorithm::hierarchical};
  EXPECT_TRUE(is_exact(hierarchy, hosts({0, 0, 1, 1})));
  EXPECT_FALSE(is_exact(hierarchy, hosts({0, 0, 0, 1, 1, 1})));
  EXPECT_FALSE(is_exact(parse_algorithm_name("hierarchical(direct,ring)"), hosts({0, 0, 1, 1})));
  EXPECT_TRUE(is_exact({.algorithm = Algorithm::direct}, hosts({0, 0, 0, 1, 1, 1})));
  EXPECT_FALSE(is_exact({.algorithm = Algorithm::ring}, hosts({0, 0, 1, 1})));
}

TEST(Select, LanesAreForDirectAlone) {
  CollectiveSpec wanted = spec_of(Op::all_reduce, 2, 10);
  wanted.pieces = {{{0, 1}}, {{1, 1}}};
  const auto found = candidates(wanted, DType::fp32, hosts({0, 0}), {}, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].spec.algorithm, Algorithm::direct);
}

// Only there a message has to wait for another of the same rank.
TEST(Select, LanesAreExchangedInPartsWhereARankOfThisHostSendsSeveralSubtrees) {
  const auto part_of = [](std::vector<std::vector<Subtree>> pieces, const Topology& topology) {
    CollectiveSpec wanted = spec_of(Op::all_reduce, 2, 10'000'000);
    wanted.algorithm = Algorithm::direct;
    wanted.pieces = std::move(pieces);
    return complete_spec(wanted, DType::fp32, topology, {}).segment_elements;
  };
  EXPECT_EQ(part_of({{{0, 1}}, {{1, 1}, {2, 1}, {3, 1}}}, hosts({0, 0})), std::size_t{1} << 18);
  EXPECT_EQ(part_of({{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}}, hosts({0, 0})), 0U) << "one subtree each";
  EXPECT_EQ(part_of({{{0, 1}}, {{1, 1}, {2, 1}, {3, 1}}}, hosts({0, 1})), 0U) << "two hosts";
  EXPECT_EQ(part_of({{}, {{0, 1}, {1, 1}}}, hosts({0, 0})), 0U) << "one has none";
}

TEST(Select, LatencyDecidesSmallOnesAndBytesDecideLargeOnes) {
  const Topology eight = hosts(std::vector<int>(8, 0));
  EXPECT_EQ(ranking(Op::all_reduce, 1, eight, true).front(), Algorithm::one_shot);
  // 7 times as many bytes as any other algorithm.
  EXPECT_EQ(ranking(Op::all_reduce, 100'000'000, eight, true).back(), Algorithm::one_shot);
}

TEST(Select, FollowsTheModel) {
  // Eight hosts of one rank: with free messages direct is as good as it gets, with dear ones a tree is.
  std::vector<int> apart = {0, 1, 2, 3, 4, 5, 6, 7};
  LinkModel dear;
  dear.network.message_us = 1000;
  LinkModel cheap;
  cheap.network.message_us = 0;
  EXPECT_EQ(ranking(Op::broadcast, 100, hosts(apart), true, cheap).front(), Algorithm::one_shot);
  EXPECT_NE(ranking(Op::broadcast, 100, hosts(apart), true, dear).front(), Algorithm::one_shot);
}

// Small blocks for many hosts: few messages with much in each. Large blocks: each takes the straight way.
TEST(Select, SmallBlocksTravelTogetherAndLargeOnesAlone) {
  std::vector<int> apart(16);
  std::iota(apart.begin(), apart.end(), 0);
  EXPECT_EQ(ranking(Op::all_to_all, 1, hosts(apart), true).front(), Algorithm::halving_doubling);
  EXPECT_EQ(ranking(Op::all_to_all, 1'000'000, hosts(apart), true).front(), Algorithm::direct);
  const Topology four_of_eight =
      hosts({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3});
  EXPECT_EQ(ranking(Op::all_to_all, 1, four_of_eight, true).front(), Algorithm::hierarchical);
  EXPECT_EQ(ranking(Op::all_to_all, 1'000'000, four_of_eight, true).front(), Algorithm::direct);
}

// In memory a message costs little more than a copy; and a hierarchy of single ranks, or of one host, is what
// direct is.
TEST(Select, BlocksGoDirectlyInMemoryAndBetweenAFewHosts) {
  for (int world : {1, 2, 3, 4, 8, 16}) {
    const Topology together = hosts(std::vector<int>(static_cast<std::size_t>(world), 0));
    EXPECT_EQ(ranking(Op::all_to_all, 1, together, true).front(), Algorithm::direct) << world;
  }
  EXPECT_EQ(ranking(Op::all_to_all, 1, hosts({0, 1, 2, 3}), true).front(), Algorithm::direct);
}

TEST(Select, CompletesWhatAnAlgorithmNeeds) {
  const Topology topology = hosts({0, 0, 0, 1, 1, 1});
  const auto complete = [&](Algorithm algorithm) {
    CollectiveSpec spec = spec_of(Op::all_reduce, 6, 1'000'000);
    spec.algorithm = algorithm;
    return complete_spec(spec, DType::fp32, topology, {});
  };
  EXPECT_EQ(complete(Algorithm::ring).segment_elements, 0u);
  EXPECT_GE(complete(Algorithm::tree).segment_elements, 16 * 1024 / sizeof(float));
  EXPECT_LE(complete(Algorithm::tree).segment_elements, 1024 * 1024 / sizeof(float));
  EXPECT_EQ(complete(Algorithm::mesh).grid.rows * complete(Algorithm::mesh).grid.columns, 6);
  EXPECT_THAT(complete(Algorithm::hierarchical).ranks_per_host, ElementsAre(3, 3));
}

TEST(AlgorithmName, IsReadAndWrittenAlike) {
  for (const char* name :
       {"ring", "direct", "one_shot", "hierarchical(ring,tree)", "hierarchical(halving_doubling,direct)"}) {
    EXPECT_EQ(to_string(parse_algorithm_name(name)), name);
  }
  EXPECT_EQ(parse_algorithm_name("hierarchical"), parse_algorithm_name("hierarchical(direct,direct)"));
  EXPECT_EQ(parse_algorithm_name("hierarchical(ring,tree)"),
            AlgorithmName({Algorithm::hierarchical, Algorithm::ring, Algorithm::tree}));
}

TEST(AlgorithmName, SaysWhatIsWrong) {
  const auto error_of = [](std::string_view text) -> std::string {
    try {
      parse_algorithm_name(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  for (const char* wrong : {"ring(tree,tree)", "hierarchical(ring)", "hierarchical(", "hierarchical()",
                            "hierarchical(ring,tree) ", "(ring,tree)"}) {
    EXPECT_THAT(error_of(wrong), HasSubstr("as in hierarchical(ring,tree)")) << wrong;
  }
  EXPECT_THAT(error_of("rings"), HasSubstr("ring")) << "the names that exist are listed";
  EXPECT_THAT(error_of("hierarchical(ring,,tree)"), Not(HasSubstr("no error")));
  EXPECT_THAT(error_of("hierarchical(ring,hierarchical)"), HasSubstr("cannot be part of a hierarchy"));
  EXPECT_EQ(error_of("hierarchical(ring,x)"),
            "unknown algorithm 'x': expected one of ring, tree, halving_doubling, direct, one_shot, mesh");
}

}  // namespace
}  // namespace lockstep::comm
