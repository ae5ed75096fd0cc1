// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/activity.h"

#include <gtest/gtest.h>

namespace lockstep::elastic {
namespace {

TEST(Activity, WhoSaysNothingWorks) {
  EXPECT_FALSE(Activity().waits());
}

TEST(Activity, WaitsForAsLongAsAnyWaitLasts) {
  Activity activity;
  {
    const Activity::Wait outer(&activity);
    EXPECT_TRUE(activity.waits());
    { const Activity::Wait inner(&activity); }
    EXPECT_TRUE(activity.waits());
  }
  EXPECT_FALSE(activity.waits());
  const Activity::Wait of_nobody(nullptr);
  EXPECT_FALSE(activity.waits());
}

TEST(Activity, GetsOnWithWhatIsDoneAndWithTheEndOfAWait) {
  Activity activity;
  activity.get_on();
  EXPECT_EQ(activity.progress(), 1u);
  {
    const Activity::Wait wait(&activity);
    EXPECT_EQ(activity.progress(), 1u) << "a wait that never ends is no progress";
  }
  EXPECT_EQ(activity.progress(), 2u);
}

// It asks the others again and again whether they have written their parts.
TEST(Activity, OneThatAwaitsItsDiskGetsOnWithTheDiskOnly) {
  Activity activity;
  activity.set_awaiting_disk(true);
  const std::uint64_t before = activity.progress();
  {
    const Activity::Wait wait(&activity);
    EXPECT_FALSE(activity.waits());
  }
  activity.set_awaiting_disk(true);
  EXPECT_EQ(activity.progress(), before) << "to say it again is no progress";
  activity.get_on_with_disk();
  EXPECT_EQ(activity.progress(), before + 1);
  activity.set_awaiting_disk(false);
  EXPECT_EQ(activity.progress(), before + 2);
  activity.get_on_with_disk();
  EXPECT_EQ(activity.progress(), before + 2) << "a disk that works behind the training is none of it";
  const Activity::Wait wait(&activity);
  EXPECT_TRUE(activity.waits());
}

}  // namespace
}  // namespace lockstep::elastic
