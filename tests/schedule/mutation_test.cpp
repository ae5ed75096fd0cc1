// SPDX-License-Identifier: Apache-2.0
//
// Breaks generated programs on purpose. The checker must refuse each mutant, unless the interpreter, which
// knows nothing of the checker, finds that it still does its job in every order of events that is tried.
#include "tests/schedule/mutation.h"

#include <cstdint>
#include <iostream>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/mesh/lanes.h"
#include "lockstep/schedule/check/check.h"

#include "tests/schedule/interpreter.h"
#include "tests/schedule/specs.h"

namespace lockstep::schedule::testing {
namespace {

constexpr int kMutantsOfEachKind = 2;
constexpr std::uint64_t kRuns = 5;

std::optional<std::string> first_failure(const CollectiveSpec& spec, const std::vector<Program>& programs) {
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    if (auto failure = run_once(spec, programs, seed)) return failure;
  }
  return std::nullopt;
}

// Mutants that the interpreter finds broken, and those that it does not, by what the checker says. A refused
// mutant that works breaks a rule that keeps it safe with other transports or orders.
struct Tally {
  int broken_refused = 0;
  int broken_accepted = 0;
  int working_refused = 0;
  int working_accepted = 0;
};

class MutationRun {
 public:
  void mutate(const CollectiveSpec& spec) {
    const std::vector<Program> original = programs_of(spec);
    const CheckResult proof = check(spec, original);
    ASSERT_FALSE(proof.violation) << describe(spec) << "\n  " << proof.violation->to_string();
    const auto failure = first_failure(spec, original);
    ASSERT_FALSE(failure) << describe(spec) << "\n  " << *failure;

    Random random(++seed_);
    for (const Mutation& mutation : all_mutations()) {
      for (int turn = 0; turn < kMutantsOfEachKind; ++turn) {
        std::vector<Program> mutant = original;
        if (mutation.apply(mutant, random) && mutant != original) judge(spec, mutation.name, mutant);
      }
    }
  }

  void report() const {
    Tally all;
    for (const auto& [name, tally] : tallies_) {
      print(name, tally);
      all.broken_refused += tally.broken_refused;
      all.broken_accepted += tally.broken_accepted;
      all.working_refused += tally.working_refused;
      all.working_accepted += tally.working_accepted;
    }
    print("all", all);
    EXPECT_GT(all.broken_refused, 500);
    EXPECT_EQ(all.broken_accepted, 0);
  }

 private:
  static void print(std::string_view name, const Tally& tally) {
    const int broken = tally.broken_refused + tally.broken_accepted;
    std::cout << fmt::format(
        "{:>28}: {:5} of {:5} broken mutants refused ({:.1f} %); of {:4} that work {:4}\n", name,
        tally.broken_refused, broken, broken == 0 ? 100.0 : 100.0 * tally.broken_refused / broken,
        tally.working_refused + tally.working_accepted, tally.working_refused);
  }

  void judge(const CollectiveSpec& spec, std::string_view name, const std::vector<Program>& mutant) {
    const auto failure = first_failure(spec, mutant);
    const auto violation = check(spec, mutant).violation;
    Tally& tally = tallies_[name];
    if (failure) {
      ++(violation ? tally.broken_refused : tally.broken_accepted);
      EXPECT_TRUE(violation) << describe(spec) << "\n  mutation: " << name << "\n  " << *failure;
    } else {
      ++(violation ? tally.working_refused : tally.working_accepted);
    }
  }

  std::map<std::string_view, Tally> tallies_;
  std::uint64_t seed_ = 0;
};

TEST(Mutation, OfFlatAlgorithmsIsRefused) {
  MutationRun run;
  for (const Algorithm algorithm : kFlatAlgorithms) {
    for (const Op op : kAllOps) {
      if (!supports(algorithm, op)) continue;
      for (const int world : {2, 3, 4, 5, 7, 8}) {
        for (const std::size_t count : {std::size_t{3}, static_cast<std::size_t>(2 * world + 3)}) {
          CollectiveSpec spec = flat_spec(op, algorithm, world, count);
          spec.root = world / 2;
          run.mutate(spec);
          spec.segment_elements = 4;
          run.mutate(spec);
        }
      }
    }
  }
  run.report();
}

class RepeatedMessages {
 public:
  void repeat_one(const CollectiveSpec& spec) {
    std::vector<Program> mutant = programs_of(spec);
    if (!send_message_twice(mutant, random_)) return;
    const auto refused = check(spec, mutant).violation;
    ASSERT_TRUE(refused) << describe(spec);
    if (check_without_formulas(spec, mutant).violation) return;
    ++harmless_;
    EXPECT_THAT(refused->to_string(), ::testing::MatchesRegex("rank .* elements, by the formula .*"))
        << describe(spec);
  }

  // Programs that would run, and are refused for what they cost alone.
  int harmless() const { return harmless_; }

 private:
  Random random_{3};
  int harmless_ = 0;
};

TEST(Mutation, ThatSendsAMessageTwiceIsRefusedForItsCost) {
  for (const Algorithm algorithm : kPartAlgorithms) {
    RepeatedMessages messages;
    for (const Op op : kAllOps) {
      if (!supports(algorithm, op)) continue;
      for (int world = 2; world <= 9; ++world) {
        CollectiveSpec spec = flat_spec(op, algorithm, world, 50);
        spec.grid = squarest_grid(world, false);
        for (int turn = 0; turn < 4; ++turn) messages.repeat_one(spec);
        spec = hierarchical_spec(op, {2, world}, algorithm, Algorithm::ring);
        spec.count = 50;
        for (int turn = 0; turn < 4; ++turn) messages.repeat_one(spec);
      }
    }
    EXPECT_GT(messages.harmless(), 50) << name_of(algorithm);
  }
}

TEST(Mutation, OfMeshIsRefused) {
  MutationRun run;
  for (const GridShape& grid : grids_up_to(9)) {
    for (const Op op : kAllOps) {
      const int world = grid.rows * grid.columns;
      if (world < 2 || !supports(Algorithm::mesh, op)) continue;
      CollectiveSpec spec = flat_spec(op, Algorithm::mesh, world, 11);
      spec.grid = grid;
      spec.root = world / 2;
      run.mutate(spec);
    }
  }
  run.report();
}

TEST(Mutation, OfHierarchicalIsRefused) {
  MutationRun run;
  for (const std::vector<int>& hosts : {std::vector{2, 2}, std::vector{3, 1, 2}}) {
    for (const Op op : kAllOps) {
      for (const Algorithm inner : kFlatAlgorithms) {
        for (const Algorithm outer : kFlatAlgorithms) {
          if (!supports(Algorithm::hierarchical, op) || !supports(outer, op)) continue;
          CollectiveSpec spec = flat_spec(op, Algorithm::hierarchical, hosts.size() == 2 ? 4 : 6, 13);
          spec.ranks_per_host = hosts;
          spec.inner = inner;
          spec.outer = outer;
          spec.root = 3;
          run.mutate(spec);
        }
      }
    }
  }
  run.report();
}

TEST(Mutation, OfLanesIsRefused) {
  MutationRun run;
  const std::vector<LaneOwnership> ownerships = {
      {.first_lane = {0, 1, 8}},          {.first_lane = {0, 3, 4}},
      {.first_lane = {0, 3, 3, 8}},       {.first_lane = {0, 0, 5, 7, 8}},
      {.first_lane = {0, 1, 2, 3, 4}},    {.first_lane = {0, 7, 9, 16, 16}},
      {.first_lane = {0, 2, 4, 6, 7, 8}}, {.first_lane = {0, 0, 1, 1, 1, 1}},
      {.first_lane = {0, 5, 11, 16}}};
  for (const LaneOwnership& ownership : ownerships) {
    for (const Op op : {Op::all_reduce, Op::reduce_scatter}) {
      for (const std::size_t count : {2, 13}) {
        CollectiveSpec spec = flat_spec(op, Algorithm::direct, ownership.world(), count);
        for (Rank rank = 0; rank < ownership.world(); ++rank) {
          spec.pieces.push_back(complete_subtrees(ownership.first_lane[static_cast<std::size_t>(rank)],
                                                  ownership.first_lane[static_cast<std::size_t>(rank) + 1]));
        }
        run.mutate(spec);
      }
    }
  }
  run.report();
}

}  // namespace
}  // namespace lockstep::schedule::testing
