// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/hosts.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::Optional;

using Ids = std::vector<std::string>;

Ids any_ids() {
  return *rc::gen::nonEmpty(
      rc::gen::container<Ids>(rc::gen::element<std::string>("node-a", "node-b", "node-c", "")));
}

RC_GTEST_PROP(Hosts, EqualIdsAndOnlyTheyShareAHost, ()) {
  const Ids ids = any_ids();
  const Hosts hosts(ids);
  RC_ASSERT(hosts.world() == static_cast<int>(ids.size()));
  for (Rank a = 0; a < hosts.world(); ++a) {
    for (Rank b = 0; b < hosts.world(); ++b) {
      RC_ASSERT((hosts.host_of(a) == hosts.host_of(b)) ==
                (ids[static_cast<std::size_t>(a)] == ids[static_cast<std::size_t>(b)]));
    }
  }
}

RC_GTEST_PROP(Hosts, EveryRankIsOnceOnItsHost, ()) {
  const Hosts hosts(any_ids());
  int total = 0;
  for (int host = 0; host < hosts.count(); ++host) {
    const std::vector<Rank>& ranks = hosts.ranks_on(host);
    RC_ASSERT(std::ranges::is_sorted(ranks));
    for (const Rank rank : ranks) RC_ASSERT(hosts.host_of(rank) == host);
    total += static_cast<int>(ranks.size());
  }
  RC_ASSERT(total == hosts.world());
}

RC_GTEST_PROP(Hosts, ConsecutiveMeansThatEveryHostIsOneRun, ()) {
  const Hosts hosts(any_ids());
  bool runs = true;
  for (int host = 0; host < hosts.count(); ++host) {
    const std::vector<Rank>& ranks = hosts.ranks_on(host);
    runs = runs && ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size());
  }
  RC_ASSERT(hosts.consecutive() == runs);
  RC_ASSERT(hosts.ranks_per_host().has_value() == runs);
}

TEST(Hosts, CountsRanksPerHost) {
  const Ids consecutive = {"b", "b", "b", "a", "c", "c"};
  EXPECT_THAT(Hosts(consecutive).ranks_per_host(), Optional(ElementsAre(3, 1, 2)));
  const Ids round_robin = {"a", "b", "a", "b"};
  const Hosts hosts(round_robin);
  EXPECT_EQ(hosts.ranks_per_host(), std::nullopt);
  EXPECT_THAT(hosts.ranks_on(1), ElementsAre(1, 3));
}

TEST(Hosts, RefusesAnEmptyList) {
  EXPECT_THROW(Hosts(Ids{}), UsageError);
}

}  // namespace
}  // namespace lockstep
