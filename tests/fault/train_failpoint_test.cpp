// SPDX-License-Identifier: Apache-2.0
//
// A worker of a run that dies, stops, hangs or fails at every failpoint of training and of its membership, or
// dies at every one of a checkpoint: the run ends with the bits that it would have had, or with the code of a
// mistake and can then be resumed to them. LOCKSTEP_RANKS says how many ranks are swept at each point; fewer
// than all: another one at each, and hangs, each of which takes its timeouts, and checkpoints at some points
// only.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/disturbed_run.h"
#include "tests/support/failpoints.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRanks = 3;  // that can be the victim; there may be more

// How a point is reached, and what the supervisor says of a worker that is lost there.
struct Way {
  std::string conditions = "step=3";
  std::string phase = "after step 2 was decided";
  std::string loss = {};  // of another worker before: where that is killed
};

constexpr const char* kEarlyLoss = "train.step.begun@rank=3,step=2";

// A thread of its own writes checkpoints, while training goes on. Only after a loss at the end is one made
// of a step that has one.
Way way_to_checkpoint(const std::string& point) {
  if (point != "checkpoint.replace.moved") {
    return {.conditions = "", .phase = "after (step [0-9] was decided|its vote for step [0-9])"};
  }
  return {.conditions = "",
          .phase = "(while generation [2-9] came together|after step 6 was decided)",
          .loss = "train.finished@rank=0"};
}

Way way_to(const std::string& point) {
  if (point.starts_with("checkpoint.")) return way_to_checkpoint(point);
  const std::string together = "while generation [0-9]+ came together";
  const std::string together_again = "while generation ([2-9]|[1-9][0-9]+) came together";
  const std::string decided = "after step 3 was decided";
  static const std::map<std::string, Way> ways = {
      {"elastic.placed", {.conditions = "", .phase = together}},
      {"elastic.vote.sent", {.phase = "after (step 2 was decided|its vote for step 3|step 3 was decided)"}},
      {"elastic.decision.heard", {.phase = decided}},
      {"train.kept", {.conditions = "", .phase = together_again, .loss = kEarlyLoss}},
      {"train.connected", {.conditions = "", .phase = together}},
      {"train.heal.middle", {.conditions = "hit=2", .phase = together_again, .loss = kEarlyLoss}},
      {"train.healed", {.conditions = "", .phase = together_again, .loss = kEarlyLoss}},
      {"train.begun", {.conditions = "", .phase = together}},
      {"train.decided", {.phase = decided}},
      {"train.update.saved", {.phase = decided}},
      {"train.update.chunk", {.phase = decided}},
      {"train.update", {.phase = decided}},
      {"train.gather", {.phase = decided}},
      {"train.applied", {.phase = decided}},
      {"train.validate", {.conditions = "step=2", .phase = "after step 2 was decided"}},
      {"train.validating", {.conditions = "step=2", .phase = "after step 2 was decided"}},
      {"train.boundary", {.phase = decided}},
      {"train.snapshot", {.conditions = "hit=1", .phase = "after step [0-9] was decided"}},
      {"train.ended", {.conditions = "", .phase = "after step 6 was decided"}},
      {"train.finished", {.conditions = "", .phase = "after step 6 was decided"}},
  };
  const auto found = ways.find(point);
  return found == ways.end() ? Way() : found->second;
}

std::vector<std::string> points_of_workers() {
  std::vector<std::string> points = test::swept_failpoints("elastic.");
  std::erase_if(points, is_of_the_coordinator);
  for (std::string& point : test::swept_failpoints("train.")) points.push_back(std::move(point));
  return points;
}

class TrainFailpoint : public DisturbedRun, public ::testing::WithParamInterface<std::string> {
 protected:
  static const std::string& point() { return GetParam(); }

  // Those of all layouts.
  static Flags common() {
    Flags flags = {"--parallelism.tensor_lanes", "2"};
    // More than one part on each.
    if (point() == "train.validating") flags.insert(flags.end(), {"--validation.steps", "70"});
    // Something to collect.
    if (point() == "checkpoint.collect.uncommitted") {
      flags.insert(flags.end(), {"--checkpoint.keep_last", "1"});
    }
    return flags;
  }
  static Flags with_common(Flags flags, const Flags& more) {
    for (const Flags& others : {common(), more}) flags.insert(flags.end(), others.begin(), others.end());
    return flags;
  }

  // Other shares of the state at each point and for each rank.
  static Flags layout(int rank) {
    static const std::vector<Flags> layouts = {
        {"--workers", "3", "--parallelism.zero_stage", "1"},
        {"--workers", "3", "--parallelism.zero_stage", "3"},
        {"--workers", "4", "--parallelism.pipeline", "2", "--parallelism.zero_stage", "2"},
        {"--workers", "3", "--parallelism.zero_stage", "2"},
        {"--workers", "3", "--parallelism.zero_stage", "0"},
        {"--workers", "4", "--parallelism.tensor", "2", "--parallelism.sequence_parallel", "true",
         "--zero.offload", "disk"},
    };
    if (!way_to(point()).loss.empty()) return {"--workers", "4", "--parallelism.zero_stage", "2"};
    // Where every rank has all weights after an update, or gets them in the next pass, there is no gathering.
    if (point() == "train.gather") return layouts.front();
    // What is on a disk is saved from there, without a copy, and has no journal: not the last one.
    const bool needs_journal = point() == "train.update.saved" || point() == "train.update.chunk";
    const bool needs_memory = point() == "train.snapshot" || needs_journal;
    // Nor has what is not shared out.
    const std::size_t count = layouts.size() - (needs_memory ? 1 : 0) - (needs_journal ? 1 : 0);
    return layouts[(failpoint::index_of(point()) + static_cast<std::size_t>(rank)) % count];
  }

  // Those that `action` has its turn with.
  static std::vector<int> victims(int action) {
    std::vector<int> ranks;
    for (int i = 0; i < LOCKSTEP_RANKS; ++i) {
      ranks.push_back((static_cast<int>(failpoint::index_of(point())) + action + i) % kRanks);
    }
    return ranks;
  }

  // The run with this rank as the victim.
  Finished disturb(const std::string& run, int rank, const std::string& action, const Flags& more) {
    const Way way = way_to(point());
    std::string rules;
    if (!way.loss.empty()) rules = fmt::format("{},once={}.before:kill;", way.loss, reached(run));
    rules += fmt::format("{}@rank={},{}{}once={}:{}", point(), rank, way.conditions,
                         way.conditions.empty() ? "" : ",", reached(run), action);
    const Flags flags = flags_of(run, with_common(layout(rank), more));
    return Program(flags, {{"LOCKSTEP_FAILPOINTS", rules}}).finish();
  }

  // On one host each share is with two of those that are left.
  static void expect_nothing_lost(const Finished& finished) {
    if (way_to(point()).loss.empty()) return;
    EXPECT_THAT(finished.output, HasSubstr("went on after step "));
    EXPECT_THAT(finished.output, Not(HasSubstr("resumed ")));
  }

  // "rank 1 (node7, pid 77) WHAT while generation 2 came together"
  static std::string sentence(int rank, const std::string& what) {
    return fmt::format("rank {} \\([^ ]+, pid [0-9]+\\) {} {}", rank, what, way_to(point()).phase);
  }

  void expect_replaced(int rank) {
    SCOPED_TRACE(fmt::format("rank {} is killed; {}", rank, ::testing::PrintToString(layout(rank))));
    const std::string run = fmt::format("killed-{}", rank);
    const Finished finished = disturb(run, rank, "kill", {});
    expect_undisturbed(run, finished);
    expect_nothing_lost(finished);
    EXPECT_THAT(finished.error_output, ContainsRegex(sentence(rank, "was killed by signal 9 \\(Killed\\)")));
  }

  void expect_replaced_when_frozen(int rank) {
    SCOPED_TRACE(fmt::format("rank {} is stopped; {}", rank, ::testing::PrintToString(layout(rank))));
    const std::string run = fmt::format("stopped-{}", rank);
    const Finished finished = disturb(run, rank, "stop", {"--elastic.beat_timeout_seconds", "1"});
    expect_undisturbed(run, finished);
    expect_nothing_lost(finished);
    EXPECT_THAT(finished.error_output,
                ContainsRegex(sentence(rank, "was ended") + ": nothing was heard of it for"));
  }

  // Its process beats, and its training stands still for good.
  void expect_replaced_when_hung(int rank) {
    SCOPED_TRACE(fmt::format("rank {} hangs; {}", rank, ::testing::PrintToString(layout(rank))));
    const std::string run = fmt::format("hung-{}", rank);
    // More than a busy machine may keep a process from its processor.
    Flags flags = {"--elastic.stall_timeout_seconds", "3"};
    // Before the first step of a generation the others find it; later it takes no more than the stall.
    const bool has_begun = way_to(point()).phase.find("came together") == std::string::npos;
    if (!has_begun) flags.insert(flags.end(), {"--comm.train_timeout_seconds", "4"});
    const Finished finished = disturb(run, rank, "sleep(1000000)", flags);
    expect_undisturbed(run, finished);
    EXPECT_THAT(finished.error_output,
                ContainsRegex(sentence(rank, "was ended") + ": " + reason_of_a_hang() + " for"));
  }

  // Membership::vote() passes that point with the lock that beats need too.
  static std::string reason_of_a_hang() {
    const std::string still = "it beats, but has not moved";
    return point() == "elastic.vote.sent" ? "(" + still + "|nothing was heard of it)" : still;
  }

  // Of ours, which it would make again: nothing is tried again, and the others save what they have.
  void expect_mistake(int rank) {
    SCOPED_TRACE(fmt::format("rank {} fails; {}", rank, ::testing::PrintToString(layout(rank))));
    const std::string run = fmt::format("failed-{}", rank);
    const Finished failed = disturb(run, rank, "throw", {});
    EXPECT_EQ(failed.exit_code, 70) << failed.output << failed.error_output;
    EXPECT_THAT(failed.error_output,
                HasSubstr(fmt::format("lockstep: failpoint {} was told to throw", point())));
    EXPECT_THAT(failed.error_output, ContainsRegex("lockstep: " + sentence(rank, "ended with exit code 70")));
    EXPECT_THAT(failed.error_output, Not(ContainsRegex("exit code 70[^\n]*starts again")));
    expect_nothing_left(run);
    expect_undisturbed(run, run_program(flags_of(run, with_common({"--resume", "auto"}, {}))));
  }
};

TEST_P(TrainFailpoint, LeavesNoTraceInTheResult) {
  train_whole(common());
  for (const int rank : victims(0)) expect_replaced(rank);
  for (const int rank : victims(1)) expect_replaced_when_frozen(rank);
  for (const int rank : victims(2)) expect_mistake(rank);
}

INSTANTIATE_TEST_SUITE_P(All, TrainFailpoint, ::testing::ValuesIn(points_of_workers()),
                         [](const auto& test) { return test::test_name_of(test.param); });

class SavingWorker : public TrainFailpoint {
 protected:
  // The leader alone commits checkpoints and removes old ones.
  static std::vector<int> writers() {
    const bool leads = failpoint::index_of(point()) >= failpoint::index_of("checkpoint.manifest.written");
    return leads ? std::vector<int>{0} : victims(0);
  }
};

TEST_P(SavingWorker, IsReplaced) {
  train_whole(common());
  for (const int rank : writers()) expect_replaced(rank);
}

std::vector<std::string> points_of_checkpoints() {
  if (LOCKSTEP_RANKS == kRanks) return test::swept_failpoints("checkpoint.");
  return {"checkpoint.shard.before_sync", "checkpoint.commit.written", "checkpoint.folder.renamed"};
}

INSTANTIATE_TEST_SUITE_P(All, SavingWorker, ::testing::ValuesIn(points_of_checkpoints()),
                         [](const auto& test) { return test::test_name_of(test.param); });

// Before the vote, which the others then wait behind; in the update; and where ranks next talk to each other.
std::vector<std::string> points_of_hangs() {
  if (LOCKSTEP_RANKS == kRanks) return points_of_workers();
  return {"train.clipped", "train.mirrored", "train.update", "train.boundary"};
}

class HungWorker : public TrainFailpoint {};

TEST_P(HungWorker, IsReplaced) {
  train_whole(common());
  expect_replaced_when_hung(victims(3).front());
}

INSTANTIATE_TEST_SUITE_P(All, HungWorker, ::testing::ValuesIn(points_of_hangs()),
                         [](const auto& test) { return test::test_name_of(test.param); });

}  // namespace
}  // namespace lockstep::testing
