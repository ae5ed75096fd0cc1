// SPDX-License-Identifier: Apache-2.0
//
// The figures of a disturbed run, from recorded sequences of events.
#include <cmath>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/chaos/figures.h"

namespace lockstep::cli {
namespace {

using Faults = std::vector<InjectedFault>;
using Generations = std::vector<GenerationRecord>;
using Steps = std::vector<StepRecord>;

InjectedFault fault(FaultKind kind, double time_s, std::int64_t step = 0, double stopped_for_s = 0) {
  return {.fault = {.kind = kind, .stopped_for_s = stopped_for_s}, .time_s = time_s, .step = step};
}

// A generation that trains until it loses a worker at 10 s in its step 6, and what comes after it.
const Generations kOneLoss = {{1.0, "formed", -1}, {1.1, "begun", 0},   {2.0, "trained", 1},
                              {10.25, "lost", 5},  {10.5, "formed", 5}, {10.6, "begun", 5},
                              {11.0, "trained", 6}};

TEST(ChaosFigures, AKillIsNoticedAndRecoveredFrom) {
  const auto outcomes = outcomes_of(Faults{fault(FaultKind::kill, 10)}, kOneLoss);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_DOUBLE_EQ(*outcomes[0].noticed_s, 0.25);
  EXPECT_DOUBLE_EQ(*outcomes[0].recovered_s, 1.0);
}

TEST(ChaosFigures, WhatNobodyNoticesHasNoTimes) {
  const auto outcomes = outcomes_of(
      Faults{fault(FaultKind::stop, 3, 0, 1.5), fault(FaultKind::kill, 10), fault(FaultKind::kill, 20)},
      kOneLoss);
  EXPECT_FALSE(outcomes[0].noticed_s) << "it went on before anybody gave it up";
  EXPECT_TRUE(outcomes[1].noticed_s);
  EXPECT_FALSE(outcomes[2].noticed_s) << "it had no place";
  EXPECT_FALSE(outcomes[2].recovered_s);
}

TEST(ChaosFigures, AStopIsNoticedLateAndTakesNoLossOfOthers) {
  Generations generations = kOneLoss;
  generations.insert(generations.end(), {{14.0, "lost", 8}, {15.0, "trained", 9}});
  const auto outcomes =
      outcomes_of(Faults{fault(FaultKind::stop, 4), fault(FaultKind::kill, 10)}, generations);
  EXPECT_DOUBLE_EQ(*outcomes[0].noticed_s, 10.0);
  EXPECT_DOUBLE_EQ(*outcomes[0].recovered_s, 11.0);
  EXPECT_DOUBLE_EQ(*outcomes[1].noticed_s, 0.25);
}

TEST(ChaosFigures, ALauncherIsRecoveredFromWithoutANotice) {
  const Generations generations = {{1.0, "formed", -1}, {1.1, "begun", 0},  {2.0, "trained", 1},
                                   {12.0, "formed", 4}, {12.1, "begun", 4}, {13.0, "trained", 5}};
  const Faults faults = {fault(FaultKind::launcher, 10, 6)};
  const auto outcomes = outcomes_of(faults, generations);
  EXPECT_FALSE(outcomes[0].noticed_s);
  EXPECT_DOUBLE_EQ(*outcomes[0].recovered_s, 3.0);
  EXPECT_EQ(repeats_of(faults, generations), (Repeats{.total = 3, .most = 3})) << "5, 6, and 7, under way";
}

TEST(ChaosFigures, TheStepUnderWayIsRepeated) {
  EXPECT_EQ(repeats_of({}, kOneLoss), (Repeats{.total = 1, .most = 1}));
}

TEST(ChaosFigures, ALossBeforeTheBeginRepeatsNothingMore) {
  const Generations generations = {{1, "formed", -1}, {2, "begun", 0},  {3, "trained", 1},
                                   {4, "lost", 5},    {5, "formed", 5}, {6, "lost", 5},
                                   {7, "formed", 5},  {8, "begun", 5},  {9, "trained", 6}};
  EXPECT_EQ(repeats_of({}, generations), (Repeats{.total = 1, .most = 1}));
}

TEST(ChaosFigures, MakingRoomForOthersRepeatsNothing) {
  const Generations generations = {{1, "formed", -1},   {2, "begun", 0},  {3, "trained", 1},
                                   {4, "regrouped", 5}, {5, "formed", 5}, {6, "begun", 5}};
  EXPECT_EQ(repeats_of({}, generations), Repeats{});
}

TEST(ChaosFigures, ARollbackRepeatsWhatWasDecided) {
  const Generations generations = {{1, "formed", -1}, {2, "begun", 0},   {3, "trained", 1},
                                   {4, "lost", 12},   {5, "formed", 12}, {6, "begun", 10},
                                   {7, "lost", 10},   {8, "formed", 10}, {9, "begun", 10}};
  EXPECT_EQ(repeats_of({}, generations), (Repeats{.total = 4, .most = 3}));
}

TEST(ChaosFigures, EffectiveTimeIsThatOfStepsThatCount) {
  // From 100 s on, a second each; after the third one a second is lost, and the third is trained again.
  const Steps steps = {{1, 101, 1}, {2, 102, 1}, {3, 103, 1}, {3, 105, 1}, {4, 106, 1}};
  const auto whole = effective_time(steps, 60, true);
  ASSERT_TRUE(whole);
  EXPECT_DOUBLE_EQ(whole->window_s, 6);
  EXPECT_DOUBLE_EQ(whole->share, 4.0 / 6);
  EXPECT_EQ(whole->steps, 4);
  EXPECT_DOUBLE_EQ(effective_time(steps, 8, false)->share, 4.0 / 8) << "it still tries to go on";
  const auto part = effective_time(steps, 5, true);
  EXPECT_DOUBLE_EQ(part->share, 3.0 / 5);
  EXPECT_EQ(part->steps, 3);
  EXPECT_FALSE(effective_time({}, 60, true));
}

TEST(ChaosFigures, TimeUntilAStepCountsFromTheFirst) {
  const Steps steps = {{1, 101, 1}, {2, 102, 1}, {2, 104, 1}};
  EXPECT_DOUBLE_EQ(*time_until(steps, 2), 4);
  EXPECT_FALSE(time_until(steps, 3));
}

TEST(ChaosFigures, LossesAreComparedStepByStep) {
  const Steps undisturbed = {{1, 1, 1, 3.5}, {2, 2, 1, 3.25}, {3, 3, 1, std::nan("")}, {4, 4, 1, 3.0}};
  EXPECT_EQ(compare_losses(undisturbed, undisturbed), LossComparison{.steps = 4});
  Steps disturbed = undisturbed;
  disturbed[1].loss = std::nextafter(3.25, 4);
  EXPECT_EQ(compare_losses(disturbed, undisturbed),
            (LossComparison{.steps = 4, .different = 1, .first_different = 2}));
  disturbed.push_back({2, 9, 1, 3.25});
  EXPECT_EQ(compare_losses(disturbed, undisturbed), LossComparison{.steps = 4}) << "as it was recorded last";
  disturbed.erase(disturbed.begin() + 2);
  disturbed.push_back({5, 10, 1, 2.0});
  EXPECT_EQ(compare_losses(disturbed, undisturbed),
            (LossComparison{.steps = 5, .different = 2, .first_different = 3}))
      << "one has no step 3, the other no step 5";
}

TEST(ChaosFigures, ALossThatWasNotRecordedIsEqualToNone) {
  const Steps unrecorded = {{1, 1, 1, std::nullopt}};
  EXPECT_EQ(compare_losses(unrecorded, unrecorded),
            (LossComparison{.steps = 1, .different = 1, .first_different = 1}));
}

TEST(ChaosFigures, SpreadsAreOfThoseThatHaveTheTime) {
  const std::vector<FaultOutcome> outcomes = {
      {FaultKind::kill, 0.1, 1.0}, {FaultKind::stop, 10.0, 11.0}, {FaultKind::kill, std::nullopt, 3.0}};
  EXPECT_DOUBLE_EQ(spread_over(outcomes, &FaultOutcome::recovered_s, FaultKind::kill)->median, 2.0);
  EXPECT_DOUBLE_EQ(spread_over(outcomes, &FaultOutcome::noticed_s)->max, 10.0);
  EXPECT_FALSE(spread_over(outcomes, &FaultOutcome::noticed_s, FaultKind::all));
}

TEST(ChaosRecords, AreReadUpToALineThatIsCutOff) {
  const Steps steps = parse_steps(
      "{\"step\":1,\"time\":10.5,\"loss\":3,\"step_s\":0.5}\n{\"step\":2,\"time\":11,\"step_s\":0.5}\n{\"st",
      "f");
  EXPECT_EQ(steps, (Steps{{1, 10.5, 0.5, 3.0}, {2, 11, 0.5}}));
  EXPECT_TRUE(std::isnan(
      parse_steps("{\"step\":1,\"time\":1,\"loss\":null,\"step_s\":1}\n", "f").at(0).loss.value()));
  const Generations generations =
      parse_generations("{\"time\":1,\"event\":\"lost\",\"generation\":2,\"workers\":4,\"step\":7}\n", "f");
  EXPECT_EQ(generations, (Generations{{1, "lost", 7}}));
}

TEST(ChaosRecords, NameTheLineThatIsNone) {
  try {
    parse_steps("{\"step\":1,\"time\":1,\"step_s\":1}\nnonsense\n", "metrics.jsonl");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep::cli
