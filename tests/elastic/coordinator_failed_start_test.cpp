// SPDX-License-Identifier: Apache-2.0
//
// Members that reach the coordinator, but not each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/coordinator_rig.h"

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Rig;
using testing::seconds;

CoordinatorOptions options_with_room(int expected, int most) {
  return {.expected = expected,
          .min_members = 1,
          .max_members = most,
          .beat_timeout = seconds(1000),
          .stall_timeout = seconds(1000),
          .join_timeout = seconds(20),
          .host = "a"};
}

// All members of the generation leave it for the same reason; who holds a state is below 10.
void fail_start(Rig& rig) {
  const Generation generation = rig.coordinator.generation();
  for (const MemberId member : rig.members()) {
    rig.join(member, member < 10 ? "a" : "b",
             {.generation = generation,
              .held = member < 10 ? rig.coordinator.decided() : kNoStep,
              .reason = "cannot reach rank 2"});
  }
}

// The next generation, however long it is waited for.
void await_generation(Rig& rig) {
  while (!rig.coordinator.is_running() && rig.outputs<End>().empty()) {
    const auto deadline = rig.coordinator.next_deadline();
    ASSERT_TRUE(deadline);
    ASSERT_GT(*deadline, rig.now) << "it would be asked without end";
    rig.pass(*deadline - rig.now);
  }
}

// Two members that train, and a third one, of another host, in a generation with them.
Rig two_and_a_newcomer(CoordinatorOptions options = options_with_room(2, 3)) {
  Rig rig(options);
  rig.join_all({1, 2});
  rig.begin(0);
  rig.join(30, "b");
  rig.vote_all(1);
  rig.join(1, "a", {.generation = 1, .held = 1});
  rig.join(2, "a", {.generation = 1, .held = 1});
  return rig;
}

TEST(CoordinatorFailedStart, ANewcomerThatCannotBeReachedIsLeftOut) {
  Rig rig = two_and_a_newcomer();
  for (int failed = 0; failed < 3; ++failed) {
    ASSERT_THAT(rig.members(), ElementsAre(1, 2, 30));
    fail_start(rig);
    EXPECT_EQ(rig.coordinator.failed_starts().count(), static_cast<std::size_t>(failed + 1));
  }
  EXPECT_THAT(rig.coordinator.failed_starts().reason(), HasSubstr("cannot reach rank 2"));
  await_generation(rig);
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(30));
  EXPECT_FALSE(rig.sent<Dismiss>().is_over);
  EXPECT_THAT(rig.sent<Dismiss>().reason, HasSubstr("cannot reach rank 2"));
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
  rig.begin(1);
  rig.vote_all(2);
  EXPECT_EQ(rig.coordinator.decided(), 2);
  EXPECT_EQ(rig.coordinator.failed_starts().count(), 0u);
}

TEST(CoordinatorFailedStart, OneThatHadNoPartInItGetsItsTurn) {
  Rig rig = two_and_a_newcomer(options_with_room(2, 3));
  rig.join(31, "c");
  for (int failed = 0; failed < 3; ++failed) fail_start(rig);
  await_generation(rig);
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(30));
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
  rig.begin(1);
  rig.vote_all(2);
  EXPECT_TRUE(rig.sent<Decision>().regroup);
  rig.join(1, "a", {.generation = rig.coordinator.generation(), .held = 2});
  rig.join(2, "a", {.generation = rig.coordinator.generation(), .held = 2});
  EXPECT_THAT(rig.members(), ElementsAre(1, 2, 31));
}

TEST(CoordinatorFailedStart, AHostWithSuchNewcomersIsFlapping) {
  CoordinatorOptions options = options_with_room(2, 3);
  options.losses = {.per_member = 1, .window = seconds(1000)};
  Rig rig = two_and_a_newcomer(options);
  for (const MemberId next : {31, 32}) {
    for (int failed = 0; failed < 3; ++failed) fail_start(rig);
    await_generation(rig);
    rig.begin(rig.coordinator.decided());
    rig.join(next, "b");
    rig.vote_all(rig.coordinator.decided() + 1);
    const Generation generation = rig.coordinator.generation();
    if (rig.coordinator.is_running()) break;
    for (const MemberId member : {1, 2}) {
      rig.join(member, "a", {.generation = generation, .held = rig.coordinator.decided()});
    }
  }
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
  EXPECT_TRUE(rig.coordinator.is_running());
  EXPECT_EQ(rig.coordinator.decided(), 3) << "the second one was refused at once";
}

TEST(CoordinatorFailedStart, AtTheBeginThoseOfThisHostGoOnAlone) {
  Rig rig(options_with_room(3, 3));
  rig.join_all({1, 2});
  rig.join(30, "b");
  for (int failed = 0; failed < 3; ++failed) fail_start(rig);
  await_generation(rig);
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(30));
  EXPECT_THAT(rig.members(), ElementsAre(1, 2));
}

TEST(CoordinatorFailedStart, WhenTheOthersDoNotSufficeTheRunEnds) {
  CoordinatorOptions options = options_with_room(3, 3);
  options.min_members = 3;
  Rig rig(options);
  rig.join_all({1, 2});
  rig.join(30, "b");
  int failed = 0;
  while (rig.coordinator.is_running()) {
    ASSERT_LT(failed, 100);
    fail_start(rig);
    ++failed;
    await_generation(rig);
  }
  ASSERT_EQ(rig.outputs<End>().size(), 1u);
  EXPECT_FALSE(rig.outputs<End>().front().is_finished);
  EXPECT_THAT(rig.outputs<End>().front().reason, HasSubstr("cannot reach rank 2"));
  EXPECT_GE(failed, 10);
  EXPECT_GT(rig.now, Time(seconds(20)));
}

TEST(CoordinatorFailedStart, AFewCostNoTimeAndALossIsNone) {
  Rig rig = two_and_a_newcomer();
  for (int round = 0; round < 10; ++round) {
    fail_start(rig);
    EXPECT_TRUE(rig.coordinator.is_running());
    fail_start(rig);
    EXPECT_TRUE(rig.coordinator.is_running());
    rig.lose(30);
    EXPECT_EQ(rig.coordinator.failed_starts().count(), 0u);
    rig.join(30, "b");
    for (const MemberId member : {1, 2}) {
      rig.join(member, "a", {.generation = rig.coordinator.generation(), .held = 1});
    }
    EXPECT_THAT(rig.receivers<Dismiss>(), IsEmpty());
  }
}

TEST(CoordinatorFailedStart, AGenerationThatHasDecidedAStepHasNotFailed) {
  Rig rig = two_and_a_newcomer();
  for (std::int64_t step = 1; step < 20; ++step) {
    rig.begin(step);
    rig.vote_all(step + 1);
    fail_start(rig);
    EXPECT_TRUE(rig.coordinator.is_running());
    EXPECT_EQ(rig.coordinator.failed_starts().count(), 0u);
  }
}

}  // namespace
}  // namespace lockstep::elastic
