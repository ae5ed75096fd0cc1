// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/deadline.h"

#include <chrono>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(Deadline, OfNothingHasPassed) {
  const Deadline now = Deadline::after(0ns);
  EXPECT_TRUE(now.passed());
  EXPECT_EQ(now.left(), 0ns);
}

TEST(Deadline, InThePastLeavesNothing) {
  for (nanoseconds past : {nanoseconds(-1), nanoseconds(-1h), nanoseconds::min()}) {
    const Deadline deadline = Deadline::after(past);
    EXPECT_TRUE(deadline.passed());
    EXPECT_EQ(deadline.left(), 0ns);
    EXPECT_GE(deadline.waited(), 0ns);
  }
}

TEST(Deadline, LaterLeavesAtMostWhatWasGiven) {
  const Deadline deadline = Deadline::after(1h);
  EXPECT_FALSE(deadline.passed());
  EXPECT_GT(deadline.left(), 0ns);
  EXPECT_LE(deadline.left(), nanoseconds(1h));
  EXPECT_LE(deadline.waited(), nanoseconds(1h));
}

TEST(Deadline, TooFarForTheClockIsTheEndOfTheClock) {
  for (nanoseconds far : {nanoseconds::max(), nanoseconds::max() - 1ns}) {
    const Deadline deadline = Deadline::after(far);
    EXPECT_FALSE(deadline.passed());
    EXPECT_GT(deadline.left(), nanoseconds(24h * 365));
    EXPECT_EQ(deadline.end(), Clock::time_point::max());
  }
}

TEST(Deadline, CountsTheWaitFromItsStart) {
  const Deadline deadline = Deadline::after(1h);
  const nanoseconds before = deadline.waited();
  const nanoseconds after = deadline.waited();
  EXPECT_GE(before, 0ns);
  EXPECT_GE(after, before);
}

}  // namespace
}  // namespace lockstep
