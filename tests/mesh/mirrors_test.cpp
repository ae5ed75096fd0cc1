// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mirrors.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(MirrorsByRank, AreOnOtherHostsWhereThereAreSome) {
  const auto mirrors = [](const std::vector<int>& hosts) { return mirrors_by_rank(hosts); };
  EXPECT_THAT(mirrors({0, 0}), ElementsAre(1, 0));
  EXPECT_THAT(mirrors({0, 0, 0}), ElementsAre(1, 2, 0));
  EXPECT_THAT(mirrors({0, 0, 1, 1}), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(mirrors({0, 1, 0, 1}), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(mirrors({0, 0, 1, 1, 2, 2}), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(mirrors({0, 0, 0, 1, 1}), ElementsAre(3, 4, 3, 0, 1)) << "one has two";
  EXPECT_THAT(mirrors({0, 0, 0, 1}), ElementsAre(3, 3, 3, 0)) << "one has all others";
}

// However ranks lie on up to three hosts: never itself, and never on the same host where there is another.
TEST(MirrorsByRank, OfAnyHosts) {
  for (unsigned number = 0; number < 3U * 3 * 3 * 3 * 3 * 3; ++number) {
    std::vector<int> hosts;
    for (unsigned rest = number; hosts.size() < 6; rest /= 3) hosts.push_back(static_cast<int>(rest % 3));
    const bool has_others = std::ranges::adjacent_find(hosts, std::ranges::not_equal_to()) != hosts.end();
    const std::vector<Rank> mirrors = mirrors_by_rank(hosts);
    ASSERT_EQ(mirrors.size(), hosts.size());
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      const auto mirror = static_cast<std::size_t>(mirrors[rank]);
      EXPECT_NE(mirror, rank);
      EXPECT_TRUE(!has_others || hosts[mirror] != hosts[rank]) << ::testing::PrintToString(hosts);
    }
  }
}

}  // namespace
}  // namespace lockstep
