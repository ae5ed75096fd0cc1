// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/groups.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/train/holding.h"

#include "tests/support/ranks.h"
#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

const comm::GroupSettings kTwoHosts = {.hosts = {0, 0, 0, 1, 1, 1}};

TEST(Groups, OfScopeWorldShareAmongAllDataParallelRanks) {
  test::run_ranks(transport::make_loopback(6), kTwoHosts, [](const comm::Communicator& world) {
    const Groups groups = make_groups(world, Mesh(6, {}));
    EXPECT_EQ(groups.sharing.size(), 6);
    EXPECT_EQ(groups.copies.size(), 1);
  });
}

TEST(Groups, OfScopeHostShareInsideHosts) {
  test::run_ranks(transport::make_loopback(6), kTwoHosts, [](const comm::Communicator& world) {
    const Groups groups = make_groups(world, Mesh(6, {}), spec::ZeroScope::host);
    EXPECT_EQ(groups.data.size(), 6);
    EXPECT_EQ(groups.sharing.size(), 3);
    EXPECT_EQ(groups.sharing.rank(), world.rank() % 3);
    EXPECT_EQ(groups.copies.size(), 2);
    EXPECT_EQ(groups.copies.rank(), world.rank() / 3);
  });
}

TEST(Groups, OfScopeHostAreThoseOfTheWorldOnOneHost) {
  test::run_ranks(transport::make_loopback(6), kTwoHosts, [](const comm::Communicator& world) {
    const Groups groups = make_groups(world, Mesh(6, {.pipeline = 2}), spec::ZeroScope::host);
    EXPECT_EQ(groups.sharing.size(), 3);
    EXPECT_EQ(groups.copies.size(), 1);
  });
}

TEST(Groups, OfARankThatIsAloneOnItsHostShareNothing) {
  test::run_ranks(transport::make_loopback(2), {.hosts = {0, 1}}, [](const comm::Communicator& world) {
    const Groups groups = make_groups(world, Mesh(2, {}), spec::ZeroScope::host);
    EXPECT_EQ(groups.sharing.size(), 1);
    EXPECT_FALSE(holding_of(model::llama::make(kSmallLlama), {}, groups, {.zero_stage = 3}).shards_weights);
  });
}

TEST(Groups, UnevenHostsAreRefusedOnAllRanks) {
  test::run_ranks(transport::make_loopback(3), {.hosts = {0, 0, 1}}, [](const comm::Communicator& world) {
    EXPECT_THROW(make_groups(world, Mesh(3, {}), spec::ZeroScope::host), UsageError);
  });
}

// What is held from step to step is a share among the ranks of a host, the same on every host.
TEST(Holding, OfScopeHostHasSharesOfTheRanksOfAHost) {
  std::vector<Range> own(6);
  std::size_t elements = 0;
  test::run_ranks(transport::make_loopback(6), kTwoHosts, [&](const comm::Communicator& world) {
    const Groups groups = make_groups(world, Mesh(6, {}), spec::ZeroScope::host);
    const Holding holding = holding_of(model::llama::make(kSmallLlama), {}, groups,
                                       {.bucket_elements = 1 << 20, .zero_stage = 3});
    EXPECT_TRUE(holding.copies_on_hosts);
    ASSERT_EQ(holding.partition.own.size(), 1U);
    own[static_cast<std::size_t>(world.rank())] = holding.partition.own.front();
    if (world.rank() == 0) elements = holding.partition.elements;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(own[rank].size(), elements / 3);
    EXPECT_EQ(own[rank], own[rank + 3]);
  }
}

}  // namespace
}  // namespace lockstep::train
