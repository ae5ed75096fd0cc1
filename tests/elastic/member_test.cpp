// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/member.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::elastic {
namespace {

using State = Member::State;

using Happened = std::optional<MemberEvent>;

const Happened kNothing;

Place place(Generation generation, std::int64_t decided, std::uint64_t attempt = 1) {
  return {.generation = generation, .rank = 0, .members = {4, 5}, .decided = decided, .attempt = attempt};
}

// With a place in generation 3 that has begun at step 7.
Member placed() {
  Member member(4, "a");
  member.join({.step = 7}, "new");
  member.hear(place(3, 7));
  member.begun(7);
  return member;
}

TEST(Member, TellsWhatItHolds) {
  Member member(4, "a");
  const Join expected = {.member = 4, .host = "a", .held = 7, .voted = 8, .reason = "why", .attempt = 1};
  EXPECT_EQ(member.join({.step = 7, .voted = 8}, "why"), expected);
  EXPECT_EQ(member.state(), State::joining);
}

TEST(Member, TellsOfTheRunThatItWasIn) {
  Member member(4, "a");
  EXPECT_EQ(member.join({}, "new").run, 0u);
  Place mine = place(3, 7);
  mine.run = 77;
  member.hear(mine);
  EXPECT_EQ(member.join({.step = 7}, "why").run, 77u);
}

TEST(Member, AppliesAtItsPlaceWhatWasDecidedWithoutIt) {
  struct Case {
    Held held;
    std::int64_t decided;
    bool applies_voted;
    bool holds_decided;
  };
  const Case cases[] = {{{7, 8}, 8, true, true},
                        {{7, 8}, 7, false, true},
                        {{7, kNoStep}, 7, false, true},
                        {{7, kNoStep}, 8, false, false},
                        {{7, 8}, 9, false, false},
                        {{kNoStep, kNoStep}, kNoStep, false, false},
                        {{kNoStep, kNoStep}, 8, false, false}};
  for (const Case& known : cases) {
    Member member(4, "a");
    member.join(known.held, "new");
    EXPECT_EQ(member.hear(place(1, known.decided)),
              Happened(Placed{place(1, known.decided), known.applies_voted, known.holds_decided}));
  }
}

TEST(Member, HearsTheDecisionOfTheStepItVotedFor) {
  Member member = placed();
  EXPECT_EQ(member.vote(8), (Vote{4, 3, 8}));
  EXPECT_EQ(member.hear(Decision{2, 8, false}), kNothing);
  EXPECT_EQ(member.hear(Decision{3, 7, false}), kNothing);
  EXPECT_EQ(member.hear(Decision{3, 8, false}), Happened(Decided{{3, 8, false}}));
  EXPECT_EQ(member.hear(Decision{3, 8, false}), kNothing) << "the same once more";
  member.vote(9);
  EXPECT_EQ(member.hear(Decision{3, 9, true}), Happened(Decided{{3, 9, true}}));
  EXPECT_EQ(member.state(), State::outside);
  EXPECT_EQ(member.join({.step = 9}, "regroup").generation, 3u);
}

TEST(Member, TheEndOfItsGenerationIsToldOnce) {
  for (const bool has_voted : {false, true}) {
    Member member = placed();
    if (has_voted) member.vote(8);
    EXPECT_EQ(member.hear(Abandon{2, "old"}), kNothing);
    EXPECT_EQ(member.hear(Abandon{3, "lost"}), Happened(GenerationEnded{3, "lost"}));
    EXPECT_EQ(member.hear(Abandon{3, "lost"}), kNothing);
    EXPECT_EQ(member.hear(Decision{3, 8, false}), kNothing);
    EXPECT_EQ(member.state(), State::outside);
  }
}

TEST(Member, GivesUpItsPlaceByItself) {
  Member member = placed();
  member.vote(8);
  EXPECT_EQ(member.join({.step = 7, .voted = 8}, "rank 1 is silent").generation, 3u);
  EXPECT_EQ(member.hear(Decision{3, 8, false}), kNothing) << "its place will tell";
  EXPECT_EQ(member.hear(Abandon{3, "lost"}), kNothing);
  EXPECT_EQ(member.hear(place(3, 8, 2)), kNothing) << "that was the generation before";
  EXPECT_EQ(member.hear(place(4, 8, 2)), Happened(Placed{place(4, 8, 2), true, true}));
}

TEST(Member, ALostConnectionIsALostGeneration) {
  Member member = placed();
  EXPECT_EQ(member.disconnect("reset by peer"), Happened(GenerationEnded{3, "reset by peer"}));
  EXPECT_EQ(member.disconnect("reset by peer"), kNothing);
  EXPECT_EQ(member.reconnect(), std::nullopt) << "the worker has not asked yet";
  EXPECT_EQ(member.join({.step = 7}, "reset").attempt, 2u);
}

TEST(Member, AsksAgainOverANewConnection) {
  Member member(4, "a");
  Join join = member.join({.step = 7}, "new");
  EXPECT_EQ(member.disconnect("reset by peer"), kNothing);
  join.attempt = 2;
  EXPECT_EQ(member.reconnect(), FromMember(join));
  EXPECT_EQ(member.hear(place(1, 7, 1)), kNothing) << "the coordinator has given that place up";
  EXPECT_EQ(member.hear(place(2, 7, 2)), Happened(Placed{place(2, 7, 2), false, true}));
}

TEST(Member, IsGoneWhenItIsDismissedOrLeaves) {
  Member dismissed = placed();
  EXPECT_EQ(dismissed.hear(Dismiss{false, "too late"}), Happened(Refused{false, "too late"}));
  EXPECT_EQ(dismissed.state(), State::gone);
  EXPECT_EQ(dismissed.reconnect(), std::nullopt);
  Member left = placed();
  EXPECT_EQ(left.leave(), (Leave{4}));
  EXPECT_EQ(left.disconnect("reset by peer"), kNothing);
  EXPECT_EQ(left.reconnect(), FromMember(Leave{4})) << "nobody has said that it was heard";
  EXPECT_EQ(left.hear(place(9, 7)), kNothing);
  EXPECT_EQ(left.hear(Dismiss{true, "finished"}), Happened(Left{}));
  EXPECT_EQ(left.state(), State::gone);
  EXPECT_EQ(left.reconnect(), std::nullopt);
}

TEST(Member, BeatsTellWhereItIs) {
  Member member(4, "a");
  member.join({}, "new");
  EXPECT_EQ(member.beat(1, false), (Beat{4, 0, kNoStep, 1, true}));
  member.hear(place(3, 7));
  EXPECT_EQ(member.beat(2, false), (Beat{4, 3, 7, 2, false}));
  member.begun(7);
  member.vote(8);
  EXPECT_EQ(member.beat(3, false), (Beat{4, 3, 8, 3, true}));
}

TEST(Member, CallsThatDoNotFitAreBugs) {
  Member member(4, "a");
  EXPECT_THROW(member.vote(1), InternalError);
  EXPECT_THROW(member.begun(1), InternalError);
  member.join({}, "new");
  EXPECT_THROW(member.join({}, "new"), InternalError);
  Member voted = placed();
  voted.vote(8);
  EXPECT_THROW(voted.vote(8), InternalError);
}

}  // namespace
}  // namespace lockstep::elastic
