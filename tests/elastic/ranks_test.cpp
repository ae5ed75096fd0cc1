// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Ranks, PlacesAreAMultipleWithinTheLimits) {
  const GenerationSize size = {.least = 3, .most = 9, .multiple = 2};
  const std::size_t places[] = {0, 0, 0, 0, 4, 4, 6, 6, 8, 8, 8, 8};
  for (std::size_t candidates = 0; candidates < std::size(places); ++candidates) {
    EXPECT_EQ(places_for(candidates, size), places[candidates]) << candidates;
  }
}

TEST(Ranks, HostsStandTogetherWhereTheirFirstMemberStands) {
  const std::vector<Candidate> candidates = {{1, "b"}, {2, "a"}, {3, "b"}, {4, "c"}, {5, "a"}, {6, "a"}};
  EXPECT_THAT(choose_members(candidates, {.most = 6}), ElementsAre(1, 3, 2, 5, 6, 4));
}

TEST(Ranks, TheFirstAreChosen) {
  const std::vector<Candidate> candidates = {{1, "b"}, {2, "a"}, {3, "b"}, {4, "a"}, {5, "a"}};
  EXPECT_THAT(choose_members(candidates, {.most = 3}), ElementsAre(1, 3, 2));
  EXPECT_THAT(choose_members(candidates, {.least = 6, .most = 8}), IsEmpty());
}

}  // namespace
}  // namespace lockstep::elastic
