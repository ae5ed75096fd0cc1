// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/stragglers.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/ranks.h"

namespace lockstep::train {
namespace {

// A rank with so many lanes that takes one second for each, half of it backward, and `more` in a phase.
PhaseTimes times_of(double lanes, Phase phase = Phase::other, double more = 0) {
  PhaseTimes times = {.lanes = lanes};
  times[Phase::forward] = lanes / 2;
  times[Phase::backward] = lanes / 2;
  times[phase] += more;
  return times;
}

std::optional<Slowest> slowest(const std::vector<PhaseTimes>& times, std::vector<int> work = {}) {
  if (work.empty()) work.assign(times.size(), 0);
  return slowest_rank(times, work);
}

TEST(SlowestRank, IsFoundInWorldsOfAnySize) {
  for (int world = 2; world <= 7; ++world) {
    for (Rank slow = 0; slow < world; ++slow) {
      std::vector<PhaseTimes> times(static_cast<std::size_t>(world), times_of(2));
      times[static_cast<std::size_t>(slow)] = times_of(2, Phase::backward, 4);
      EXPECT_EQ(slowest(times), (Slowest{.rank = slow, .score = 3, .phase = Phase::backward})) << world;
    }
  }
}

TEST(SlowestRank, NeedsSomebodyToBeComparedWith) {
  EXPECT_EQ(slowest({}), std::nullopt);
  EXPECT_EQ(slowest({times_of(1)}), std::nullopt);
  EXPECT_EQ(slowest({times_of(1), times_of(1, Phase::data, 9)}, {0, 1}), std::nullopt)
      << "stages of a pipeline have different work";
}

TEST(SlowestRank, EachPhaseIsToldFromTheOthers) {
  for (const Phase phase : {Phase::data, Phase::forward, Phase::backward, Phase::update, Phase::checkpoint}) {
    const auto found = slowest({times_of(2), times_of(2, phase, 2), times_of(2)});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rank, 1);
    EXPECT_EQ(found->phase, phase);
    EXPECT_DOUBLE_EQ(found->score, 2);
  }
}

TEST(SlowestRank, OneThatWaitsIsNotSlow) {
  const auto found = slowest({times_of(1, Phase::communication, 100), times_of(1), times_of(1)});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->score, 1);
}

TEST(SlowestRank, MoreLanesTakeLonger) {
  const auto found = slowest({times_of(2), times_of(1), times_of(1)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 0);
  EXPECT_DOUBLE_EQ(found->score, 1);
}

TEST(SlowestRank, OneThatWasRelievedHoldsNobodyUp) {
  // Rank 2 is three times slower, but has a third of the lanes.
  const auto found = slowest({times_of(3), times_of(3), times_of(1, Phase::forward, 1.9)});
  ASSERT_TRUE(found);
  EXPECT_NE(found->rank, 2);
  EXPECT_LT(found->score, 1.1);
}

TEST(SlowestRank, RanksWithoutLanesHaveNoSpeed) {
  const auto found = slowest({times_of(4), times_of(0), times_of(0)});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->score, 1);
}

TEST(SlowestRank, OneOfTwoSlowOnesDoesNotHideTheOther) {
  const auto found = slowest(
      {times_of(1), times_of(1, Phase::data, 3), times_of(1, Phase::data, 4), times_of(1), times_of(1)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_DOUBLE_EQ(found->score, 5);
}

TEST(SlowestRank, TheWorstOfSeveralStagesCounts) {
  const auto found = slowest(
      {times_of(1), times_of(1, Phase::data, 1), times_of(8), times_of(8, Phase::update, 1)}, {0, 0, 1, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
}

// --- In a row.

// By comparison: who was named, or -1. `slow` by comparison: the rank that is, or -1.
std::vector<Rank> named(int world, const std::vector<Rank>& slow, spec::Elastic settings) {
  std::vector<Rank> by_rank_0;
  test::run_ranks(world, [&](comm::Communicator& comm) {
    StragglerWatch watch(settings, comm, std::vector<int>(static_cast<std::size_t>(world), 0));
    for (std::size_t i = 0; i < slow.size(); ++i) {
      for (std::int64_t in_turn = 1; in_turn <= settings.straggler_freq; ++in_turn) {
        watch.add(times_of(1, Phase::forward, slow[i] == comm.rank() ? 3 : 0));
        const auto report =
            watch.compare_if_due(static_cast<std::int64_t>(i) * settings.straggler_freq + in_turn);
        ASSERT_EQ(report.has_value(), in_turn == settings.straggler_freq && world > 1);
        if (!report || comm.rank() != 0) continue;
        by_rank_0.push_back(report->is_named ? report->slowest.rank : -1);
        EXPECT_NEAR(report->mean[Phase::backward], 0.5, 1e-9) << "for one step";
        EXPECT_EQ(
            to_text(*report).find("times as long as the others, most of all in forward") != std::string::npos,
            slow[i] >= 0);
        EXPECT_EQ(report->host.empty(), !report->is_named);
      }
    }
  });
  return by_rank_0;
}

TEST(StragglerWatch, NamesWhoIsSlowForLongEnough) {
  const spec::Elastic settings = {.straggler_freq = 2, .straggler_factor = 2, .straggler_patience = 3};
  EXPECT_EQ(named(3, {1, 1, 1, 1, 1, 1}, settings), (std::vector<Rank>{-1, -1, 1, -1, -1, 1}));
  EXPECT_EQ(named(3, {1, 1, -1, 1, 1, 1}, settings), (std::vector<Rank>{-1, -1, -1, -1, -1, 1}));
  EXPECT_EQ(named(3, {1, 1, 2, 2, 2}, settings), (std::vector<Rank>{-1, -1, -1, -1, 2}));
  EXPECT_EQ(named(1, {0, 0, 0}, settings), (std::vector<Rank>{}));
}

TEST(StragglerWatch, TheFactorIsTheUsers) {
  EXPECT_EQ(named(2, {1}, {.straggler_freq = 1, .straggler_factor = 3.9, .straggler_patience = 1}),
            (std::vector<Rank>{1}));
  EXPECT_EQ(named(2, {1}, {.straggler_freq = 1, .straggler_factor = 4.1, .straggler_patience = 1}),
            (std::vector<Rank>{-1}));
}

TEST(StragglerWatch, MayBeOff) {
  test::run_ranks(2, [](comm::Communicator& comm) {
    const spec::Elastic settings = {.straggler_freq = 0};
    StragglerWatch watch(settings, comm, {0, 0});
    EXPECT_EQ(watch.compare_if_due(100), std::nullopt);
  });
}

}  // namespace
}  // namespace lockstep::train
