// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/elastic/coordinator_rig.h"

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::options_for;
using testing::Rig;

TEST(Coordinator, WaitsForAllThatTheRunWasStartedWith) {
  Rig rig(options_for(3));
  rig.join_all({7, 5});
  EXPECT_THAT(rig.out, IsEmpty());
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(6);
  ASSERT_TRUE(rig.coordinator.is_running());
  EXPECT_EQ(rig.coordinator.generation(), 1u);
  EXPECT_THAT(rig.members(), ElementsAre(7, 5, 6));
}

TEST(Coordinator, ANumberIsRecordedBeforeAnyoneIsToldOfIt) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  const Outputs expected = {Record{1, {1, 2}, kNoStep, false}, Send{1, Place{1, 0, {1, 2}, kNoStep, 1}},
                            Send{2, Place{1, 1, {1, 2}, kNoStep, 2}}};
  EXPECT_EQ(rig.out, expected);
}

TEST(Coordinator, GoesAheadWithFewerWhenTheOthersDoNotCome) {
  CoordinatorOptions options = options_for(3);
  options.min_members = 2;
  Rig rig(options);
  rig.join_all({1, 2});
  rig.pass(testing::seconds(9));
  rig.beat(1, 0);
  rig.beat(2, 0);
  options.join_timeout = testing::seconds(60);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(rig.coordinator.is_running());
    rig.pass(testing::seconds(9));
    rig.beat(1, 0);
    rig.beat(2, 0);
  }
  rig.pass(testing::seconds(6));
  EXPECT_TRUE(rig.coordinator.is_running());
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
}

TEST(Coordinator, DecidesWhenAllHaveVoted) {
  Rig rig(options_for(3));
  rig.join_all({1, 2, 3});
  rig.begin(0);
  EXPECT_EQ(rig.coordinator.decided(), 0);
  rig.vote(1, 1);
  rig.vote(3, 1);
  EXPECT_THAT(rig.out, IsEmpty());
  rig.vote(3, 1);
  EXPECT_THAT(rig.out, IsEmpty()) << "a vote counts once";
  rig.vote(2, 1);
  EXPECT_THAT(rig.receivers<Decision>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(rig.sent<Decision>(), (Decision{1, 1, false}));
  EXPECT_EQ(rig.coordinator.decided(), 1);
  rig.vote_all(2);
  EXPECT_EQ(rig.coordinator.decided(), 2);
}

TEST(Coordinator, AVoteBeforeAllHaveBegunCounts) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  rig.hear(Begun{1, 1, 5});
  rig.vote(1, 6);
  rig.hear(Begun{2, 1, 5});
  rig.vote(2, 6);
  EXPECT_EQ(rig.coordinator.decided(), 6);
}

TEST(Coordinator, VotesOfOtherGenerationsStepsAndMembersAreNone) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  rig.vote(1, 1);  // has not begun
  rig.begin(0);
  rig.vote(2, 1);
  for (const Vote& vote : {Vote{1, 0, 1}, Vote{1, 2, 1}, Vote{1, 1, 0}, Vote{1, 1, 2}, Vote{9, 1, 1}}) {
    rig.hear(vote);
    EXPECT_THAT(rig.out, IsEmpty());
  }
  EXPECT_EQ(rig.coordinator.decided(), 0);
  rig.vote(1, 1);
  EXPECT_EQ(rig.coordinator.decided(), 1);
}

TEST(Coordinator, AnOlderStepThanWasDecidedIsRecordedAsRollback) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  rig.begin(10);
  EXPECT_THAT(rig.outputs<Record>(), IsEmpty()) << "the step of a checkpoint that a new run goes on from";
  rig.vote_all(11);
  rig.lose(2);
  rig.join(1, "a", {.generation = 1, .held = 11});
  EXPECT_EQ(rig.sent<Place>().decided, 11);
  rig.begin(10);
  EXPECT_THAT(rig.outputs<Record>(), ElementsAre(Record{2, {1}, 10, true}));
  EXPECT_EQ(rig.coordinator.decided(), 10);
}

TEST(Coordinator, MembersThatDisagreeAboutTheBeginStartAgain) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  rig.hear(Begun{1, 1, 5});
  rig.hear(Begun{2, 1, 6});
  EXPECT_THAT(rig.receivers<Abandon>(), ElementsAre(1, 2));
  EXPECT_FALSE(rig.coordinator.is_running());
}

TEST(Coordinator, ANewcomerMakesTheNextDecisionTheLastOfItsGeneration) {
  CoordinatorOptions options = options_for(2);
  options.max_members = 4;
  Rig rig(options);
  rig.join_all({1, 2});
  rig.begin(0);
  rig.vote_all(1);
  rig.join(3);
  EXPECT_THAT(rig.out, IsEmpty());
  rig.vote_all(2);
  EXPECT_EQ(rig.sent<Decision>(), (Decision{1, 2, true}));
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(2, "a", {.generation = 1, .held = 2});
  EXPECT_THAT(rig.out, IsEmpty());
  rig.join(1, "a", {.generation = 1, .held = 2});
  EXPECT_THAT(rig.receivers<Place>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(rig.sent<Place>(), (Place{2, 0, {1, 2, 3}, 2, 5}));
}

TEST(Coordinator, ASpareWaitsAndTakesTheFirstPlaceThatIsFree) {
  Rig rig(options_for(2));
  rig.join_all({1, 2});
  rig.begin(0);
  rig.join(3);
  rig.vote_all(1);
  EXPECT_EQ(rig.sent<Decision>(), (Decision{1, 1, false})) << "there is no place for it";
  rig.lose(1);
  rig.join(2, "a", {.generation = 1, .held = 1});
  EXPECT_THAT(rig.receivers<Place>(), ElementsAre(2, 3));
}

TEST(Coordinator, AGenerationHasAMultipleOfTheReplicaSize) {
  CoordinatorOptions options = options_for(4);
  options.max_members = 6;
  options.min_members = 2;
  options.multiple = 2;
  Rig rig(options);
  rig.join_all({1, 2, 3, 4});
  rig.begin(0);
  rig.join(5);
  rig.vote_all(1);
  EXPECT_FALSE(rig.sent<Decision>().regroup);
  rig.join(6);
  rig.vote_all(2);
  EXPECT_TRUE(rig.sent<Decision>().regroup);
  rig.join_all({1, 2, 3, 4});
  EXPECT_EQ(rig.receivers<Place>().size(), 6u);
  rig.lose(1);
  rig.join_all({2, 3, 4, 5, 6});
  EXPECT_THAT(rig.receivers<Place>(), ElementsAre(2, 3, 4, 5));
}

TEST(Coordinator, AJoinThatIsNotTheNewestSaysNothing) {
  Rig rig(options_for(1));
  const Join join = {.member = 1, .host = "a", .attempt = 5};
  rig.hear(join);
  EXPECT_TRUE(rig.coordinator.is_running());
  rig.hear(join);
  EXPECT_TRUE(rig.coordinator.is_running());
  EXPECT_EQ(rig.coordinator.generation(), 1u);
  Join next = join;
  next.attempt = 6;  // it was connected again, and never heard of its place
  rig.hear(next);
  EXPECT_EQ(rig.coordinator.generation(), 2u);
}

TEST(Coordinator, ASecondJoinReplacesTheFirst) {
  Rig rig(options_for(2));
  rig.join(1, "a", {.held = 3});
  rig.join(1, "b", {.held = 4});
  EXPECT_FALSE(rig.coordinator.is_running());
  rig.join(2, "b");
  EXPECT_EQ(rig.sent<Place>(), (Place{1, 0, {1, 2}, 4, 2}));
}

TEST(Coordinator, TellsWhoComesAfterTheEndWhyThatWas) {
  Rig rig(options_for(1));
  rig.coordinator.give_up("no room");
  rig.join(1);
  EXPECT_EQ(rig.sent<Dismiss>().reason, "no room");
}

TEST(Coordinator, IsFinishedWhenAllHaveLeft) {
  CoordinatorOptions options = options_for(3);
  Rig rig(options);
  rig.join_all({1, 2, 3});
  rig.begin(0);
  rig.join(4);
  rig.hear(Leave{2});
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2, 4)) << "and the spare is not needed any more";
  rig.join(2);
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2));
  rig.lose(1);
  EXPECT_THAT(rig.out, IsEmpty());
  rig.hear(Leave{3});
  EXPECT_THAT(rig.outputs<End>(), ElementsAre(End{true, "the run is finished"}));
  EXPECT_EQ(rig.coordinator.next_deadline(), std::nullopt);
  rig.join(5);
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(5));
}

TEST(Coordinator, ASpareThatLeavesEndsNothing) {
  Rig rig(options_for(1));
  rig.join_all({1, 2});
  rig.hear(Leave{2});
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(2));
  EXPECT_EQ(rig.out.size(), 1u);
  EXPECT_TRUE(rig.coordinator.is_running());
}

TEST(Coordinator, NumbersThatNoGenerationCanHaveAreRefused) {
  for (const auto& [least, most, multiple] : {std::tuple(2, 1, 1), std::tuple(0, 1, 1), std::tuple(1, 1, 0),
                                              std::tuple(3, 3, 2), std::tuple(1, 3, 4)}) {
    const CoordinatorOptions options = {.min_members = least, .max_members = most, .multiple = multiple};
    EXPECT_THROW(Coordinator(options, Time(0)), UsageError) << least << " " << most << " " << multiple;
  }
}

TEST(Coordinator, ItsOwnHostComesFirst) {
  CoordinatorOptions options = options_for(3);
  options.max_members = 2;
  options.host = "home";
  Rig rig(options);
  rig.join(1, "a");
  rig.join(2, "b");
  rig.join(3, "home");
  EXPECT_THAT(rig.members(), ElementsAre(3, 1));
}

}  // namespace
}  // namespace lockstep::elastic
