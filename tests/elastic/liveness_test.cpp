// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/liveness.h"

#include <gtest/gtest.h>

namespace lockstep::elastic {
namespace {

using std::chrono::seconds;

constexpr LivenessLimits kLimits = {
    .beat_timeout = seconds(10), .stall_timeout = seconds(60), .wait_timeout = seconds(360)};

Beat beat(std::uint64_t progress, bool waits) {
  return {.progress = progress, .waits = waits};
}

TEST(Liveness, SilenceIsLimitedForEveryDuty) {
  Liveness liveness(seconds(5));
  for (const Duty duty : {Duty::none, Duty::train, Duty::catch_up, Duty::come_back}) {
    EXPECT_EQ(liveness.deadline(duty, kLimits), Time(seconds(15)));
    EXPECT_EQ(liveness.failure(duty, kLimits, seconds(14)), std::nullopt);
    EXPECT_NE(liveness.failure(duty, kLimits, seconds(15)), std::nullopt);
  }
  liveness.hear(seconds(14));
  EXPECT_EQ(liveness.deadline(Duty::none, kLimits), Time(seconds(24)));
}

TEST(Liveness, StandingStillIsLimitedByWhatIsAsked) {
  Liveness liveness(seconds(0));
  liveness.hear(beat(1, true), seconds(1));
  liveness.hear(beat(1, true), seconds(58));
  EXPECT_EQ(liveness.deadline(Duty::none, kLimits), Time(seconds(68)));
  EXPECT_EQ(liveness.deadline(Duty::train, kLimits), Time(seconds(68)));
  EXPECT_EQ(liveness.deadline(Duty::come_back, kLimits), Time(seconds(61)));
}

TEST(Liveness, TheEndOfAWaitIsAMove) {
  Liveness liveness(seconds(0));
  for (int second = 0; second <= 100; second += 5) liveness.hear(beat(1, true), seconds(second));
  liveness.hear(beat(1, false), seconds(102));
  EXPECT_EQ(liveness.failure(Duty::train, kLimits, seconds(103)), std::nullopt);
  for (int second = 105; second < 162; second += 5) liveness.hear(beat(1, false), seconds(second));
  EXPECT_EQ(liveness.failure(Duty::train, kLimits, seconds(161)), std::nullopt);
  EXPECT_NE(liveness.failure(Duty::train, kLimits, seconds(162)), std::nullopt);
}

// They wait without a deadline for those who have not voted.
TEST(Liveness, WhenOthersHaveVotedAWaitIsLimited) {
  Liveness waiting(seconds(0));
  Liveness working(seconds(0));
  for (int second = 0; second <= 355; second += 5) {
    waiting.hear(beat(1, true), seconds(second));
    working.hear(beat(1, false), seconds(second));
    EXPECT_EQ(waiting.failure(Duty::catch_up, kLimits, seconds(second)), std::nullopt);
    EXPECT_EQ(working.failure(Duty::catch_up, kLimits, seconds(second)).has_value(), second >= 60);
  }
  EXPECT_EQ(waiting.failure(Duty::train, kLimits, seconds(360)), std::nullopt);
  EXPECT_NE(waiting.failure(Duty::catch_up, kLimits, seconds(360)), std::nullopt);
}

TEST(Liveness, ANewDutyStartsAnew) {
  Liveness liveness(seconds(0));
  for (int second = 0; second <= 50; second += 5) liveness.hear(beat(0, false), seconds(second));
  liveness.renew(seconds(50));
  EXPECT_EQ(liveness.deadline(
                Duty::come_back,
                {.beat_timeout = seconds(90), .stall_timeout = seconds(60), .wait_timeout = seconds(360)}),
            Time(seconds(110)));
}

}  // namespace
}  // namespace lockstep::elastic
