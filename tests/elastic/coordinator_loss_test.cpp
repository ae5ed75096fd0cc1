// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/coordinator_rig.h"

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::options_for;
using testing::Rig;
using testing::seconds;

// Three members that have decided step 1.
Rig three_at_step_1(CoordinatorOptions options = options_for(3)) {
  Rig rig(options);
  rig.join_all({1, 2, 3});
  rig.begin(0);
  rig.vote_all(1);
  return rig;
}

TEST(CoordinatorLoss, TheOthersGoOnAtOnceWhenAllHaveComeBack) {
  Rig rig = three_at_step_1();
  rig.vote(1, 2);
  rig.lose(2);
  EXPECT_THAT(rig.receivers<Abandon>(), ElementsAre(1, 3));
  EXPECT_THAT(rig.sent<Abandon>().reason, HasSubstr("its connection was closed"));
  EXPECT_EQ(rig.sent<Abandon>().generation, 1u);
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(3, "a", {.generation = 1, .held = 1});
  EXPECT_THAT(rig.out, IsEmpty()) << "one is still to come";
  rig.join(1, "a", {.generation = 1, .held = 1, .voted = 2});
  EXPECT_THAT(rig.members(), ElementsAre(1, 3));
  EXPECT_EQ(rig.sent<Place>(), (Place{2, 0, {1, 3}, 1, 5}));
}

TEST(CoordinatorLoss, AJoinOutOfAGenerationEndsIt) {
  Rig rig = three_at_step_1();
  rig.join(2, "a", {.generation = 1, .held = 1, .reason = "rank 0 is silent"});
  EXPECT_THAT(rig.receivers<Abandon>(), ElementsAre(1, 3));
  EXPECT_THAT(rig.sent<Abandon>().reason, HasSubstr("rank 0 is silent"));
}

TEST(CoordinatorLoss, WhoeverHasNotHeardTheDecisionIsToldOfItWithItsPlace) {
  Rig rig = three_at_step_1();
  rig.vote_all(2);
  rig.lose(3);
  rig.join(1, "a", {.generation = 1, .held = 2});
  rig.join(2, "a", {.generation = 1, .held = 1, .voted = 2});
  EXPECT_EQ(rig.sent<Place>().decided, 2);
}

TEST(CoordinatorLoss, AMemberThatWasLostMayComeBack) {
  Rig rig = three_at_step_1();
  rig.lose(3);
  rig.join(3, "a", {.generation = 1, .held = 1});
  rig.join(1, "a", {.generation = 1, .held = 1});
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(2, "a", {.generation = 1, .held = 1});
  EXPECT_THAT(rig.members(), ElementsAre(1, 2, 3));
}

TEST(CoordinatorLoss, TheLossOfASpareOrAStrangerEndsNothing) {
  Rig rig = three_at_step_1();
  rig.join(4);
  rig.lose(4);
  rig.lose(9);
  EXPECT_THAT(rig.out, IsEmpty());
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, OneThatDoesNotBeatIsFenced) {
  Rig rig = three_at_step_1();
  rig.pass(seconds(9));
  EXPECT_THAT(rig.out, IsEmpty());
  rig.beat(1, 1);
  rig.beat(3, 1);
  EXPECT_EQ(rig.coordinator.next_deadline(), Time(seconds(10)));
  rig.pass(seconds(1));
  ASSERT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_EQ(rig.outputs<Fence>().front().member, 2u);
  EXPECT_THAT(rig.outputs<Fence>().front().reason, HasSubstr("10.0 s"));
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2));
  EXPECT_THAT(rig.receivers<Abandon>(), ElementsAre(1, 3));
  rig.join_all({1, 3});
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, AFencedMemberIsDismissedWhateverItSays) {
  Rig rig = three_at_step_1();
  rig.beat(1, 1);
  rig.pass(seconds(10));
  for (const FromMember& message :
       std::vector<FromMember>{Vote{2, 1, 2}, Beat{2, 1, 1, 5, false}, Join{.member = 2, .attempt = 99}}) {
    rig.hear(message);
    EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2));
    EXPECT_EQ(rig.out.size(), 1u);
  }
}

void beat_all(Rig& rig, std::uint64_t progress, bool waits) {
  for (const MemberId member : {1, 3}) rig.beat(member, progress, waits);
}

TEST(CoordinatorLoss, OneThatBeatsAndDoesNotMoveIsFenced) {
  Rig rig = three_at_step_1();
  for (std::uint64_t second = 0; second < 60; second += 5) {
    beat_all(rig, second, true);
    rig.beat(2, 7);
    EXPECT_TRUE(rig.coordinator.is_running());
    rig.pass(seconds(5));
  }
  ASSERT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_EQ(rig.outputs<Fence>().front().member, 2u);
  EXPECT_THAT(rig.outputs<Fence>().front().reason, HasSubstr("has not moved"));
}

TEST(CoordinatorLoss, OneThatWaitsForOthersIsNotFrozen) {
  Rig rig = three_at_step_1();
  for (std::uint64_t second = 0; second < 200; second += 5) {
    beat_all(rig, 7, true);
    rig.beat(2, second);
    rig.pass(seconds(5));
    EXPECT_THAT(rig.out, IsEmpty());
  }
}

TEST(CoordinatorLoss, OneThatWaitsWhileOthersWaitForItsVoteIsFencedInTheEnd) {
  Rig rig = three_at_step_1();
  rig.vote(1, 2);
  rig.vote(3, 2);
  for (int second = 0; second < 360; second += 5) {
    EXPECT_TRUE(rig.coordinator.is_running());
    beat_all(rig, 7, true);
    rig.beat(2, 7, true);
    rig.pass(seconds(5));
  }
  ASSERT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_EQ(rig.outputs<Fence>().front().member, 2u);
  EXPECT_THAT(rig.outputs<Fence>().front().reason, HasSubstr("others, which wait for it"));
}

// Those that were told the decision come back at once, and wait for the last one.
TEST(CoordinatorLoss, OneThatWaitsAfterADecisionThatRegroupsIsFencedInTheEnd) {
  Rig rig = three_at_step_1({.expected = 3, .min_members = 1, .max_members = 4});
  rig.join(4);
  for (const MemberId member : {1, 2, 3}) rig.vote(member, 2);
  ASSERT_EQ(rig.coordinator.decided(), 2);
  ASSERT_FALSE(rig.coordinator.is_running());
  for (const MemberId member : {1, 3}) rig.join(member, "a", {.generation = 1, .held = 2});
  for (int second = 0; second < 360; second += 5) {
    EXPECT_THAT(rig.outputs<Fence>(), IsEmpty());
    for (const MemberId member : {1, 3, 4}) rig.beat(member, 7, false);
    rig.beat(2, 7, true);
    rig.pass(seconds(5));
  }
  ASSERT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_EQ(rig.outputs<Fence>().front().member, 2u);
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, OneThatWaitsWhenOthersAreDoneIsFencedInTheEnd) {
  Rig rig = three_at_step_1();
  rig.hear(Leave{1});
  rig.hear(Leave{3});
  for (int second = 0; second < 360; second += 5) {
    EXPECT_THAT(rig.outputs<Fence>(), IsEmpty());
    rig.beat(2, 7, true);
    rig.pass(seconds(5));
  }
  ASSERT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_EQ(rig.outputs<End>().size(), 1u);
}

TEST(CoordinatorLoss, OneThatHasVotedMayWait) {
  Rig rig = three_at_step_1();
  rig.vote(1, 2);
  rig.vote(3, 2);
  for (std::uint64_t second = 0; second < 1000; second += 5) {
    beat_all(rig, 7, false);
    rig.beat(2, second, true);
    rig.pass(seconds(5));
    EXPECT_THAT(rig.out, IsEmpty());
  }
  rig.vote(2, 2);
  EXPECT_EQ(rig.coordinator.decided(), 2);
}

TEST(CoordinatorLoss, OneThatWaitsInAnOlderGenerationIsFrozen) {
  Rig rig = three_at_step_1();
  for (std::uint64_t second = 0; second < 60; second += 5) {
    beat_all(rig, second, true);
    rig.hear(Beat{2, 0, 1, 7, true});
    EXPECT_TRUE(rig.coordinator.is_running());
    rig.pass(seconds(5));
  }
  EXPECT_EQ(rig.outputs<Fence>().size(), 1u);
}

TEST(CoordinatorLoss, OneThatDoesNotComeBackIsFencedEvenWhenItWaits) {
  Rig rig = three_at_step_1();
  rig.lose(3);
  rig.join(1);
  for (int second = 0; second < 60; second += 5) {
    EXPECT_FALSE(rig.coordinator.is_running());
    rig.beat(1, 0, true);
    rig.beat(2, 0, true);
    rig.pass(seconds(5));
  }
  EXPECT_EQ(rig.outputs<Fence>().size(), 1u);
  EXPECT_THAT(rig.members(), ElementsAre(1));
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, OneThatWasLostMayHaveDoneEverything) {
  Rig rig(options_for(1));
  rig.join(1);
  rig.begin(0);
  rig.vote_all(1);
  rig.lose(1);
  rig.hear(Leave{1});
  ASSERT_EQ(rig.outputs<End>().size(), 1u);
  EXPECT_TRUE(rig.outputs<End>().front().is_finished);
}

TEST(CoordinatorLoss, WhatAStrangerHasDoneSaysNothing) {
  Rig rig = three_at_step_1();
  rig.join(4);
  rig.lose(4);
  rig.hear(Leave{4});
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(4)) << "it waits until it was heard";
  EXPECT_EQ(rig.out.size(), 1u);
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, TooFewMembersEndTheRunAfterAWhile) {
  CoordinatorOptions options = options_for(3);
  options.min_members = 2;
  options.join_timeout = seconds(8);
  Rig rig = three_at_step_1(options);
  rig.lose(3);
  rig.lose(1);
  rig.join(2);
  rig.pass(seconds(7));
  EXPECT_THAT(rig.out, IsEmpty());
  rig.pass(seconds(1));
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2));
  ASSERT_EQ(rig.outputs<End>().size(), 1u);
  EXPECT_FALSE(rig.outputs<End>().front().is_finished);
}

// Of two replicas of the model one is whole, and it is that which goes on: rank = stage * 2 + replica.
TEST(CoordinatorLoss, WholeReplicasGoOnBeforeOthers) {
  CoordinatorOptions options = options_for(4);
  options.multiple = 2;
  for (const auto& [pipeline, lost, left] :
       std::vector<std::tuple<int, MemberId, std::vector<MemberId>>>{{2, 1, {2, 4}},
                                                                     {2, 2, {1, 3}},
                                                                     {2, 3, {2, 4}},
                                                                     {2, 4, {1, 3}},
                                                                     {1, 1, {3, 4}},
                                                                     {1, 2, {3, 4}},
                                                                     {1, 3, {1, 2}},
                                                                     {1, 4, {1, 2}}}) {
    options.pipeline = pipeline;
    Rig rig(options);
    rig.join_all({1, 2, 3, 4});
    rig.begin(0);
    rig.lose(lost);
    for (const MemberId member : {1, 2, 3, 4}) {
      if (member != lost) rig.join(member, "a", {.generation = 1, .held = 0});
    }
    EXPECT_EQ(rig.members(), left) << "without " << lost << " of " << pipeline << " stages";
  }
}

TEST(CoordinatorLoss, WhoSavesTheLastStepHasDoneEverything) {
  CoordinatorOptions options = options_for(2);
  options.min_members = 2;
  options.can_save = true;
  options.join_timeout = seconds(8);
  options.last_step = 1;
  Rig rig(options);
  rig.join_all({1, 2});
  rig.begin(0);
  rig.vote_all(1);
  rig.lose(1);
  rig.join(2, "a", {.generation = 1, .held = 1});
  rig.pass(options.join_timeout);
  EXPECT_TRUE(rig.sent<Place>().only_saves);
  rig.begin(1);
  rig.hear(Leave{2});
  ASSERT_EQ(rig.outputs<End>().size(), 1u);
  EXPECT_TRUE(rig.outputs<End>().front().is_finished);
}

// Of three one is left, which holds step 1; two are needed.
Rig one_of_three_at_step_1() {
  CoordinatorOptions options = options_for(3);
  options.min_members = 2;
  options.can_save = true;
  options.join_timeout = seconds(8);
  Rig rig = three_at_step_1(options);
  rig.lose(3);
  rig.lose(1);
  rig.join(2, "a", {.generation = 1, .held = 1});
  return rig;
}

TEST(CoordinatorLoss, TooFewMembersSaveWhatTheyHoldBeforeTheRunEnds) {
  Rig rig = one_of_three_at_step_1();
  rig.pass(seconds(7));
  EXPECT_THAT(rig.out, IsEmpty());
  rig.pass(seconds(1));
  EXPECT_EQ(rig.sent<Place>(),
            (Place{.generation = 2, .members = {2}, .decided = 1, .attempt = 4, .only_saves = true}));
  EXPECT_EQ(rig.outputs<Record>().size(), 1u);
  rig.begin(1);
  rig.join(9);  // too late
  rig.hear(Leave{2});
  EXPECT_TRUE(rig.sent<Dismiss>().is_over);
  ASSERT_EQ(rig.outputs<End>().size(), 1u);
  EXPECT_FALSE(rig.outputs<End>().front().is_finished);
  EXPECT_THAT(rig.outputs<End>().front().reason, HasSubstr("only 1 worker there, fewer than the 2"));
}

TEST(CoordinatorLoss, ALossWhileTheLastOnesSaveIsTheLossOfAnyGeneration) {
  CoordinatorOptions options = options_for(4);
  options.min_members = 3;
  options.can_save = true;
  options.join_timeout = seconds(8);
  Rig rig(options);
  rig.join_all({1, 2, 3, 4});
  rig.begin(0);
  rig.vote_all(1);
  rig.lose(3);
  rig.lose(4);
  rig.join(1, "a", {.generation = 1, .held = 1});
  rig.join(2, "a", {.generation = 1, .held = 1});
  rig.pass(seconds(8));
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
  rig.lose(1);
  EXPECT_GT(rig.coordinator.next_deadline(), std::optional(rig.now)) << "nothing to do until 2 is back";
  rig.join(2, "a", {.generation = 2, .held = 1});
  EXPECT_TRUE(rig.sent<Place>().only_saves);
  EXPECT_THAT(rig.members(), ElementsAre(2));
  // Enough have come meanwhile: nobody has to end.
  rig.join(5);
  rig.join(6);
  rig.join(2, "a", {.generation = 3, .held = 1});
  EXPECT_THAT(rig.members(), ElementsAre(2, 5, 6));
  EXPECT_FALSE(rig.sent<Place>().only_saves);
}

TEST(CoordinatorLoss, TooFewMembersThatHoldNothingOrAreNoReplicaSaveNothing) {
  CoordinatorOptions options = options_for(3);
  options.min_members = 2;
  options.can_save = true;
  Rig fresh(options);
  fresh.join(1);
  fresh.pass(options.join_timeout);
  EXPECT_EQ(fresh.outputs<End>().size(), 1u);

  options.max_members = options.expected = 4;
  options.multiple = 2;
  Rig rig(options);
  rig.join_all({1, 2, 3, 4});
  rig.begin(0);
  for (const MemberId lost : {1, 2, 3}) rig.lose(lost);
  rig.join(4, "a", {.generation = 1, .held = 0});
  rig.pass(options.join_timeout);
  EXPECT_EQ(rig.outputs<End>().size(), 1u);
}

TEST(CoordinatorLoss, ARunThatIsToEndDoesNotWaitForMore) {
  Rig rig = one_of_three_at_step_1();
  rig.out = rig.coordinator.wind_up(rig.now);
  EXPECT_TRUE(rig.sent<Place>().only_saves);

  Rig running = three_at_step_1();
  running.out = running.coordinator.wind_up(running.now);
  EXPECT_THAT(running.out, IsEmpty()) << "they agree on the end among themselves";

  Rig starting(options_for(3));
  starting.join(1);
  starting.out = starting.coordinator.wind_up(starting.now);
  EXPECT_THAT(starting.out, IsEmpty()) << "others are on their way";
}

TEST(CoordinatorLoss, ANewcomerInTimeSavesTheRun) {
  CoordinatorOptions options = options_for(3);
  options.min_members = 2;
  options.join_timeout = seconds(8);
  Rig rig = three_at_step_1(options);
  rig.lose(3);
  rig.lose(1);
  rig.join(2);
  rig.pass(seconds(7));
  rig.join(5);
  EXPECT_THAT(rig.members(), ElementsAre(2, 5));
  rig.begin(1);
  rig.pass(seconds(2));
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(CoordinatorLoss, SurvivorsKeepTheirOrderAndHostsStandTogether) {
  Rig rig(options_for(4));
  rig.join(1, "a");
  rig.join(2, "b");
  rig.join(3, "a");
  rig.join(4, "b");
  EXPECT_THAT(rig.members(), ElementsAre(1, 3, 2, 4));
  rig.lose(3);
  rig.join(9, "b");
  rig.join(4, "b");
  rig.join(8, "a");
  rig.join(2, "b");
  rig.join(1, "a");
  EXPECT_THAT(rig.members(), ElementsAre(1, 2, 4, 9)) << "who has come first is taken first";
}

}  // namespace
}  // namespace lockstep::elastic
