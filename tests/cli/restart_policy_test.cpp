// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/restart_policy.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RestartPolicy::Time kBegin{};

TEST(RestartPolicy, ProgressIsGoneOnWithAtOnce) {
  RestartPolicy policy({.max_restarts = 100});
  for (int step = 1; step < 50; ++step) {
    EXPECT_EQ(policy.after_failure(step, kBegin + seconds(step)), milliseconds(0)) << step;
  }
}

TEST(RestartPolicy, WithoutProgressTheWaitDoublesUpToAMinute) {
  RestartPolicy policy({.max_restarts = 100});
  EXPECT_EQ(policy.after_failure(7, kBegin), milliseconds(0));
  for (const int wait : {500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}) {
    EXPECT_EQ(policy.after_failure(7, kBegin), milliseconds(wait));
  }
  EXPECT_EQ(policy.after_failure(8, kBegin), milliseconds(0));
  EXPECT_EQ(policy.after_failure(3, kBegin), milliseconds(500)) << "an older checkpoint is no progress";
}

TEST(RestartPolicy, OnlySoManyInAWindow) {
  RestartPolicy policy({.max_restarts = 2, .window_seconds = 60});
  EXPECT_TRUE(policy.after_failure(1, kBegin));
  EXPECT_TRUE(policy.after_failure(2, kBegin + seconds(30)));
  EXPECT_FALSE(policy.after_failure(3, kBegin + seconds(59)));
  EXPECT_TRUE(policy.after_failure(3, kBegin + seconds(61))) << "the first is long ago";
  EXPECT_FALSE(policy.after_failure(4, kBegin + seconds(62)));
  EXPECT_FALSE(RestartPolicy({.max_restarts = 0}).after_failure(1, kBegin));
}

}  // namespace
}  // namespace lockstep::cli
