// SPDX-License-Identifier: Apache-2.0
//
// Names of operations and algorithms, and specs that are refused.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/cost.h"
#include "lockstep/schedule/collective/generate.h"

#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::array kAlgorithms = {Algorithm::ring,        Algorithm::tree,     Algorithm::halving_doubling,
                                    Algorithm::direct,      Algorithm::one_shot, Algorithm::mesh,
                                    Algorithm::hierarchical};

TEST(CollectiveNames, AreReadAsTheyAreWritten) {
  for (Op op : kAllOps) EXPECT_EQ(parse_op(name_of(op)), op);
  for (Algorithm algorithm : kAlgorithms) EXPECT_EQ(parse_algorithm(name_of(algorithm)), algorithm);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CollectiveNames, UnknownOnesListTheKnown) {
  EXPECT_THAT(refusal([] { parse_op("allreduce"); }), HasSubstr("'allreduce': did you mean 'all_reduce'?"));
  EXPECT_THAT(refusal([] { parse_algorithm("rung"); }), HasSubstr("'rung': did you mean 'ring'?"));
  EXPECT_THAT(refusal([] { parse_algorithm(""); }), HasSubstr("expected one of ring, tree, "));
}

TEST(Supports, EverythingButReduceScatterByOneShot) {
  for (Algorithm algorithm : kAlgorithms) {
    for (Op op : kAllOps) {
      const bool senseless = algorithm == Algorithm::one_shot && op == Op::reduce_scatter;
      EXPECT_EQ(supports(algorithm, op), !senseless) << name_of(algorithm) << " " << name_of(op);
    }
  }
}

struct Refused {
  std::string says;
  std::function<void(CollectiveSpec&)> spoil;
};

TEST(Validate, NamesWhatMakesNoSense) {
  const std::vector<Refused> cases = {
      {"at least 1 rank, not 0", [](CollectiveSpec& spec) { spec.world = 0; }},
      {"limit of 4096", [](CollectiveSpec& spec) { spec.world = 5000; }},
      {"more than memory can address",
       [](CollectiveSpec& spec) { spec.count = std::numeric_limits<std::size_t>::max() / 2; }},
      {"more than memory can address",
       [](CollectiveSpec& spec) {
         spec.op = Op::all_to_all, spec.count = std::numeric_limits<std::size_t>::max() / 16 / 6 / 5;
       }},
      {"cannot do reduce_scatter; these can: ring, tree, halving_doubling, direct, mesh, hierarchical.",
       [](CollectiveSpec& spec) { spec.algorithm = Algorithm::one_shot, spec.op = Op::reduce_scatter; }},
      {"no rank 6 in a world of 6", [](CollectiveSpec& spec) { spec.op = Op::broadcast, spec.root = 6; }},
      {"no rank -1", [](CollectiveSpec& spec) { spec.op = Op::reduce, spec.root = -1; }},
      {"2 x 4 does not hold 6",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::mesh, spec.grid = {2, 4};
       }},
      {"-2 x -3 does not hold 6",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::mesh, spec.grid = {-2, -3};
       }},
      {"adds up to 5 ranks in a world of 6",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::hierarchical, spec.ranks_per_host = {2, 3};
       }},
      {"a host with 0 ranks",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::hierarchical, spec.ranks_per_host = {6, 0};
       }},
      {"part of a hierarchy",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::hierarchical, spec.ranks_per_host = {6};
         spec.inner = Algorithm::hierarchical;
       }},
      {"outer algorithm \"one_shot\" cannot do reduce_scatter",
       [](CollectiveSpec& spec) {
         spec.algorithm = Algorithm::hierarchical, spec.ranks_per_host = {3, 3};
         spec.op = Op::reduce_scatter, spec.outer = Algorithm::one_shot;
       }},
  };
  for (const Refused& refused : cases) {
    CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::direct, 6, 10);
    refused.spoil(spec);
    EXPECT_THAT(refusal([&] { validate(spec); }), HasSubstr(refused.says));
    EXPECT_THAT(refusal([&] { generate(spec, 0); }), HasSubstr(refused.says));
    EXPECT_THAT(refusal([&] { predict_cost(spec); }), HasSubstr(refused.says));
  }
}

TEST(Validate, LanePiecesCoverAllLanesInOrder) {
  const auto refusal_of = [](std::vector<std::vector<Subtree>> pieces) {
    CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::direct, 2, 10);
    spec.pieces = std::move(pieces);
    return refusal([&] { validate(spec); });
  };
  EXPECT_EQ(refusal_of({{{0, 2}}, {{2, 1}, {3, 1}}}), "accepted");
  EXPECT_EQ(refusal_of({{}, {{0, 4}}}), "accepted");
  EXPECT_THAT(refusal_of({{{0, 2}}}), HasSubstr("for 1 ranks in a world of 2"));
  EXPECT_THAT(refusal_of({{{0, 2}}, {{2, 1}}}), HasSubstr("cover 3 lanes"));
  EXPECT_THAT(refusal_of({{}, {}}), HasSubstr("cover 0 lanes"));
  EXPECT_THAT(refusal_of({{{2, 2}}, {{0, 2}}}), HasSubstr("Rank 0 brings 2 lanes from lane 2 on"));
  EXPECT_THAT(refusal_of({{{0, 1}}, {{1, 2}, {3, 1}}}), HasSubstr("no subtree that starts at lane 1"));
  EXPECT_THAT(refusal_of({{{0, 3}}, {{3, 1}}}), HasSubstr("Rank 0 brings 3 lanes"));
  EXPECT_THAT(refusal_of({{{0, -4}}, {{0, 4}}}), HasSubstr("brings -4 lanes"));
}

TEST(Validate, LanePiecesNeedDirectReductions) {
  CollectiveSpec spec = flat_spec(Op::broadcast, Algorithm::direct, 1, 10);
  spec.pieces = {{{0, 1}}};
  EXPECT_THAT(refusal([&] { validate(spec); }), HasSubstr("Lane pieces need the algorithm direct"));
  spec.op = Op::all_reduce;
  spec.algorithm = Algorithm::ring;
  EXPECT_THAT(refusal([&] { validate(spec); }), HasSubstr("not ring all_reduce"));
}

TEST(Generate, RefusesRanksOutsideTheWorld) {
  const CollectiveSpec spec = flat_spec(Op::all_reduce, Algorithm::direct, 6, 10);
  EXPECT_THAT(refusal([&] { generate(spec, 6); }), HasSubstr("no rank 6 in a world of 6"));
  EXPECT_THAT(refusal([&] { generate(spec, -1); }), HasSubstr("no rank -1"));
}

}  // namespace
}  // namespace lockstep::schedule::testing
