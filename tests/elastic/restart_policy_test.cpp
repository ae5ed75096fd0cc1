// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/restart_policy.h"

#include <chrono>
#include <optional>

#include <gtest/gtest.h>

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;

constexpr Clock::time_point kBegin{};

TEST(RestartPolicy, StartsAgainAtOnceWhatHadTrained) {
  RestartPolicy policy({});
  for (std::size_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(policy.after_failure(true, kBegin + i * 1s), 0ms);
    EXPECT_EQ(policy.restarts(), i);
  }
}

TEST(RestartPolicy, WaitsTwiceAsLongEachTimeThatItHadNot) {
  RestartPolicy policy({.max_restarts = 100, .window = 3600s, .first_wait = 500ms, .longest_wait = 3s});
  for (const auto expected : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) {
    EXPECT_EQ(policy.after_failure(false, kBegin), expected);
  }
  EXPECT_EQ(policy.after_failure(true, kBegin), 0ms);
  EXPECT_EQ(policy.after_failure(false, kBegin), 500ms);
}

TEST(RestartPolicy, GivesUpWhatFailsTooOftenWithinTheWindow) {
  RestartPolicy policy({.max_restarts = 2, .window = 60s});
  EXPECT_TRUE(policy.after_failure(true, kBegin));
  EXPECT_TRUE(policy.after_failure(true, kBegin + 50s));
  EXPECT_EQ(policy.after_failure(true, kBegin + 60s), std::nullopt);
  EXPECT_TRUE(policy.after_failure(true, kBegin + 61s)) << "the first is forgotten";
  EXPECT_EQ(policy.after_failure(true, kBegin + 62s), std::nullopt);
}

TEST(RestartPolicy, MayAllowNone) {
  RestartPolicy policy({.max_restarts = 0});
  EXPECT_EQ(policy.after_failure(true, kBegin), std::nullopt);
}

}  // namespace
}  // namespace lockstep::elastic
