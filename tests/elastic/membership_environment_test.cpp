// SPDX-License-Identifier: Apache-2.0
//
// What a worker takes from its environment and from its place to find the others.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/elastic/membership.h"

#include "tests/support/error_of.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::elastic {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using testing::HasSubstr;

TEST(MembershipFromEnvironment, IsThereOnlyWithACoordinator) {
  const test::ScopedVariable none("LOCKSTEP_COORDINATOR", nullptr);
  EXPECT_FALSE(membership_from_environment());
}

TEST(MembershipFromEnvironment, TakesWhatTheSupervisorLeft) {
  const test::ScopedVariable coordinator("LOCKSTEP_COORDINATOR", "127.0.0.1:4711");
  const test::ScopedVariable member("LOCKSTEP_MEMBER", "18446744073709551615");
  const test::ScopedVariable run("LOCKSTEP_RUN_ID", "toy");
  const auto options = membership_from_environment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->coordinator, (transport::Address{"127.0.0.1", 4711, {}}));
  EXPECT_EQ(options->id, 18'446'744'073'709'551'615U);
  EXPECT_EQ(options->credentials.me.role, "elastic");
  EXPECT_EQ(options->credentials.me.run, "toy");
  const test::ScopedVariable wrong("LOCKSTEP_MEMBER", "me");
  EXPECT_THAT(error_of<UsageError>([] { membership_from_environment(); }),
              HasSubstr("LOCKSTEP_MEMBER is 'me'"));
}

TEST(PlacementOf, IsThatOfTheGeneration) {
  rendezvous::Placement base;
  base.master_host = {"node1", "LOCKSTEP_MASTER_ADDR"};
  base.local_rank = {3, "LOCAL_RANK"};
  base.timeout = {2s, "LOCKSTEP_RENDEZVOUS_TIMEOUT"};
  const Place place{.generation = 7,
                    .rank = 1,
                    .members = {10, 11, 12},
                    .decided = 5,
                    .attempt = 1,
                    .rendezvous_port = 4712};
  const rendezvous::Placement placement = placement_of(place, base);
  EXPECT_EQ(placement.rank.value, 1);
  EXPECT_EQ(placement.world.value, 3);
  EXPECT_EQ(placement.generation.value, 7U);
  EXPECT_EQ(placement.master(), (transport::Address{"node1", 4712, {}}));
  EXPECT_FALSE(placement.served_by_rank0.value);
  EXPECT_FALSE(placement.local_rank.value);
  EXPECT_EQ(placement.timeout.value, 2s);
}

}  // namespace
}  // namespace lockstep::elastic
