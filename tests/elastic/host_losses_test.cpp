// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/host_losses.h"

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

TEST(HostLosses, AHostMayLoseSoManyOfEachMember) {
  HostLosses losses({.per_member = 2, .window = seconds(60)});
  EXPECT_EQ(losses.join("a", 1, seconds(0)), std::nullopt);
  EXPECT_EQ(losses.join("a", 2, seconds(0)), std::nullopt);
  for (int i = 1; i <= 4; ++i) {
    losses.lose("a", seconds(i));
    EXPECT_EQ(losses.join("a", 2, seconds(i)), std::nullopt) << i;
  }
  losses.lose("a", seconds(5));
  EXPECT_EQ(losses.join("a", 1, seconds(5)), "5 workers of its host were lost within 60 s");
  EXPECT_EQ(losses.join("b", 1, seconds(5)), std::nullopt);
}

TEST(HostLosses, OldOnesAreForgotten) {
  HostLosses losses({.per_member = 0, .window = seconds(60)});
  losses.lose("a", seconds(5));
  EXPECT_TRUE(losses.join("a", 1, seconds(65)));
  EXPECT_FALSE(losses.join("a", 1, seconds(66)));
}

TEST(HostLosses, MayBeUnlimited) {
  HostLosses losses({});
  for (int i = 0; i < 1000; ++i) losses.lose("a", seconds(i));
  EXPECT_FALSE(losses.join("a", 1, seconds(1000)));
}

TEST(HostLosses, TheCoordinatorRefusesAFlappingHostAndNobodyElse) {
  CoordinatorOptions options = options_for(2);
  options.losses = {.per_member = 2, .window = seconds(60)};
  Rig rig(options);
  rig.join(1, "good");
  MemberId flapping = 10;
  for (int i = 0; i < 3; ++i) {
    rig.join(++flapping, "bad");
    EXPECT_TRUE(rig.coordinator.is_running()) << i;
    rig.lose(flapping);
    rig.join(1, "good", {.generation = rig.coordinator.generation()});
  }
  EXPECT_THAT(rig.members(), ElementsAre(1)) << "the run goes on without it";
  rig.begin(0);
  rig.join(++flapping, "bad");
  EXPECT_THAT(rig.receivers<Dismiss>(), ElementsAre(flapping));
  EXPECT_FALSE(rig.sent<Dismiss>().is_over);
  EXPECT_THAT(rig.sent<Dismiss>().reason, HasSubstr("3 workers of its host were lost"));
  rig.vote_all(1);
  EXPECT_FALSE(rig.sent<Decision>().regroup) << "nobody waits for a place";
  rig.join(2, "good");
  EXPECT_THAT(rig.receivers<Dismiss>(), IsEmpty());
  rig.vote_all(2);
  EXPECT_TRUE(rig.sent<Decision>().regroup);
  rig.now += seconds(61);
  rig.join(++flapping, "bad");
  EXPECT_THAT(rig.receivers<Dismiss>(), IsEmpty()) << "it gets another chance";
}

}  // namespace
}  // namespace lockstep::elastic
