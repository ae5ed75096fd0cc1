// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/coordinator_rig.h"

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::options_for;
using testing::Rig;
using testing::seconds;

// One whose log knows of generation 7 with members 1, 2 and 3, which began at step 40.
Rig restarted() {
  CoordinatorOptions options = options_for(3);
  options.last_generation = 7;
  options.last_members = {1, 2, 3};
  options.decided = 40;
  return Rig(options);
}

TEST(CoordinatorRestart, LearnsWhatWasDecidedFromWhoeverHasHeardIt) {
  Rig rig = restarted();
  rig.join(2, "a", {.generation = 7, .held = 44, .voted = 45});
  rig.join(3, "a", {.generation = 7, .held = 44, .voted = 45});
  EXPECT_THAT(rig.out, IsEmpty());
  rig.join(1, "a", {.generation = 7, .held = 45});
  EXPECT_EQ(rig.sent<Place>(), (Place{8, 0, {1, 2, 3}, 45, 3}));
}

TEST(CoordinatorRestart, WhoWasInAnotherRunIsDismissed) {
  CoordinatorOptions options = options_for(1);
  options.run = 77;
  Rig rig(options);
  rig.join(1, "b", {.generation = 7, .held = 44, .run = 76});
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(1));
  EXPECT_FALSE(rig.sent<Dismiss>().is_over) << "another one may be started in its place";
  EXPECT_THAT(rig.sent<Dismiss>().reason, ::testing::HasSubstr("another run"));
  rig.join(2);
  EXPECT_EQ(rig.sent<Place>(), (Place{1, 0, {2}, kNoStep, 2, 77}));
  rig.lose(2);
  rig.join(2, "a", {.generation = 1, .held = 3, .run = 77});
  EXPECT_EQ(rig.sent<Place>().decided, 3);
}

TEST(CoordinatorRestart, ADecisionThatNobodyAliveHasHeardIsNone) {
  Rig rig = restarted();
  rig.join(2, "a", {.generation = 7, .held = 44, .voted = 45});
  rig.join(3, "a", {.generation = 7, .held = 44, .voted = 45});
  rig.lose(1);
  EXPECT_EQ(rig.sent<Place>(), (Place{8, 0, {2, 3}, 44, 1}));
}

TEST(CoordinatorRestart, WhoDoesNotComeBackIsGivenUp) {
  Rig rig = restarted();
  rig.join(2, "a", {.generation = 7, .held = 44});
  rig.join(3, "a", {.generation = 7, .held = 44});
  rig.beat(2, 0);
  rig.pass(seconds(9));
  rig.beat(2, 0);
  rig.beat(3, 0);
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.pass(seconds(1));
  EXPECT_THAT(rig.outputs<Fence>().size(), 1u);
  EXPECT_THAT(rig.members(), ElementsAre(2, 3));
}

TEST(CoordinatorRestart, WhatAnOlderGenerationHoldsDoesNotCount) {
  Rig rig = restarted();
  rig.join(1, "a", {.generation = 7, .held = 42});
  rig.join(2, "a", {.generation = 6, .held = 99});
  rig.lose(3);
  EXPECT_EQ(rig.sent<Place>().decided, 42);
}

TEST(CoordinatorRestart, AGenerationThatNobodyWasToldOfDoesNotCount) {
  Rig rig = restarted();
  for (const MemberId member : {1, 2, 3}) rig.join(member, "a", {.generation = 6, .held = 40});
  EXPECT_EQ(rig.coordinator.generation(), 8u);
  EXPECT_EQ(rig.sent<Place>().decided, 40);
}

TEST(CoordinatorRestart, MembersThatKnowALaterGenerationThanTheLogAreBelieved) {
  Rig rig = restarted();
  for (const MemberId member : {1, 2, 3}) rig.join(member, "a", {.generation = 9, .held = 50});
  EXPECT_EQ(rig.coordinator.generation(), 10u);
  EXPECT_EQ(rig.sent<Place>().decided, 50);
}

TEST(CoordinatorRestart, NewcomersAloneDoNotMakeItForgetWhatWasDecided) {
  Rig rig = restarted();
  for (const MemberId member : {1, 2, 3}) rig.lose(member);
  rig.join(4);
  EXPECT_EQ(rig.sent<Place>(), (Place{8, 0, {4}, 40, 1}));
  rig.begin(30);
  EXPECT_THAT(rig.outputs<Record>(), ElementsAre(Record{8, {4}, 30, true}));
}

TEST(CoordinatorRestart, WithoutKnownMembersAllThatTheRunWasStartedWithAreAwaited) {
  CoordinatorOptions options = options_for(2);
  options.last_generation = 7;  // of a log whose end was lost
  Rig rig(options);
  rig.join(1, "a", {.generation = 6, .held = 3});
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(2, "a", {.generation = 6, .held = 3});
  EXPECT_EQ(rig.coordinator.generation(), 8u);
}

// Seed 19623 of the simulator: others were taken, and what these held was lost.
TEST(CoordinatorRestart, WhoHoldsTheNewestStateIsTakenFirstAlsoWhenTheLogKnowsNobody) {
  CoordinatorOptions options = options_for(3);
  options.max_members = 2;
  options.last_generation = 7;
  Rig rig(options);
  rig.join(8, "a", {.generation = 6, .held = 99});
  rig.join(9, "a");
  rig.join(1, "a", {.generation = 7, .held = 44});
  EXPECT_THAT(rig.members(), ElementsAre(1, 8));
  EXPECT_EQ(rig.sent<Place>().decided, 44);
}

TEST(CoordinatorRestart, AMemberThatHadDoneEverythingEndsTheRun) {
  Rig rig = restarted();
  rig.hear(Leave{2});
  rig.lose(1);
  rig.join(3);
  EXPECT_THAT(rig.outputs<End>(), ElementsAre(End{true, "the run is finished"}));
}

}  // namespace
}  // namespace lockstep::elastic
