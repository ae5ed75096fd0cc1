// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mirrors.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(MirrorsByRank, AreOnOtherHostsWhereThereAreSome) {
  const auto mirrors = [](const std::vector<int>& hosts) { return mirrors_by_rank(hosts); };
  EXPECT_THAT(mirrors({0, 0}), ElementsAre(1, 0));
  EXPECT_THAT(mirrors({0, 0, 0}), ElementsAre(1, 2, 0));
  EXPECT_THAT(mirrors({0, 0, 1, 1}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(mirrors({0, 1, 0, 1}), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(mirrors({0, 0, 1, 1, 2, 2}), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(mirrors({0, 1, 2, 2}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(mirrors({0, 0, 0, 1, 1}), ElementsAre(3, 4, 3, 0, 1)) << "one has two";
  EXPECT_THAT(mirrors({0, 0, 0, 1}), ElementsAre(3, 3, 3, 0)) << "one has all others";
}

std::vector<int> any_hosts() {
  const int hosts = *rc::gen::inRange(1, 8);
  const auto ranks = *rc::gen::inRange<std::size_t>(2, 40);
  return *rc::gen::container<std::vector<int>>(ranks, rc::gen::inRange(0, hosts));
}

RC_GTEST_PROP(MirrorsByRank, AreNeverOneselfNorOnTheSameHostWhereThereIsAnother, ()) {
  const std::vector<int> hosts = any_hosts();
  const bool has_others = std::ranges::adjacent_find(hosts, std::ranges::not_equal_to()) != hosts.end();
  const std::vector<Rank> mirrors = mirrors_by_rank(hosts);
  RC_ASSERT(mirrors.size() == hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto mirror = static_cast<std::size_t>(mirrors[rank]);
    RC_ASSERT(mirror < hosts.size());
    RC_ASSERT(mirror != rank);
    RC_ASSERT(!has_others || hosts[mirror] != hosts[rank]);
  }
}

RC_GTEST_PROP(MirrorsByRank, HaveNoMoreToDoThanTheHostsForce, ()) {
  const std::vector<int> hosts = any_hosts();
  const auto ranks = static_cast<std::ptrdiff_t>(hosts.size());
  std::vector<std::ptrdiff_t> on_host_of;
  for (const int host : hosts) on_host_of.push_back(std::ranges::count(hosts, host));
  const std::ptrdiff_t largest = std::ranges::max(on_host_of);
  const std::vector<Rank> mirrors = mirrors_by_rank(hosts);
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::ptrdiff_t mirrored = std::ranges::count(mirrors, rank);
    const std::ptrdiff_t others = ranks - largest;
    if (others == 0 || largest <= others) {
      RC_ASSERT(mirrored == 1);
    } else if (on_host_of[static_cast<std::size_t>(rank)] == largest) {
      RC_ASSERT(mirrored <= 1);
    } else {
      RC_ASSERT(mirrored == largest / others || mirrored == (largest + others - 1) / others);
    }
  }
}

}  // namespace
}  // namespace lockstep
