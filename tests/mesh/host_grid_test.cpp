// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/host_grid.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep {
namespace {

std::string refusal(const Mesh& mesh, const std::vector<int>& host_of) {
  return test::error_of<UsageError>([&] { data_grid(mesh, host_of); });
}

TEST(HostGrid, CountsTheDataParallelRanksOfEveryHost) {
  const std::vector<int> two_hosts = {7, 7, 7, 7, 3, 3, 3, 3};
  EXPECT_EQ(data_grid(Mesh(8, {}), two_hosts), (HostGrid{.hosts = 2, .ranks_per_host = 4}));
  EXPECT_EQ(data_grid(Mesh(8, {.pipeline = 2}), two_hosts), (HostGrid{.hosts = 1, .ranks_per_host = 4}));
  EXPECT_EQ(data_grid(Mesh(8, {.tensor = 2}), two_hosts), (HostGrid{.hosts = 2, .ranks_per_host = 2}));
  EXPECT_EQ(data_grid(Mesh(8, {.tensor = 4}), two_hosts), (HostGrid{.hosts = 2, .ranks_per_host = 1}));
  EXPECT_EQ(data_grid(Mesh(8, {.tensor = 8}), two_hosts), (HostGrid{.hosts = 1, .ranks_per_host = 1}));
}

TEST(HostGrid, PlacesFollowHostByHost) {
  const HostGrid grid = {.hosts = 2, .ranks_per_host = 3};
  EXPECT_EQ(grid.host_of(4), 1);
  EXPECT_EQ(grid.place_on_host(4), 1);
}

RC_GTEST_PROP(HostGrid, PlacesAndPlacesOnHostsAreInverse, ()) {
  const HostGrid grid = {.hosts = *rc::gen::inRange(1, 20), .ranks_per_host = *rc::gen::inRange(1, 20)};
  for (Rank place = 0; place < grid.hosts * grid.ranks_per_host; ++place) {
    const int host = grid.host_of(place);
    const int place_on_host = grid.place_on_host(place);
    RC_ASSERT(0 <= host && host < grid.hosts);
    RC_ASSERT(0 <= place_on_host && place_on_host < grid.ranks_per_host);
    RC_ASSERT(host * grid.ranks_per_host + place_on_host == place);
  }
}

// Accepted when the hosts of a group are as the grid says, of every group; refused otherwise.
RC_GTEST_PROP(HostGrid, IsWhereEveryDataParallelRankLies, ()) {
  const MeshShape shape = {.pipeline = *rc::gen::inRange(1, 4),
                           .data = *rc::gen::inRange(1, 7),
                           .tensor = *rc::gen::inRange(1, 4)};
  const Mesh mesh(shape.pipeline * shape.data * shape.tensor, shape);
  const int per_host = *rc::gen::inRange(1, mesh.world() + 1);
  const bool swaps = *rc::gen::arbitrary<bool>();
  std::vector<int> host_of;
  for (Rank rank = 0; rank < mesh.world(); ++rank) host_of.push_back(rank / per_host);
  if (swaps) std::swap(host_of.front(), host_of.back());

  const auto fits = [&](const HostGrid& grid) {
    return std::ranges::all_of(mesh.groups(Axis::data), [&](const std::vector<Rank>& group) {
      for (Rank a = 0; a < std::ssize(group); ++a) {
        for (Rank b = 0; b < std::ssize(group); ++b) {
          const auto host = [&](Rank place) {
            return host_of[static_cast<std::size_t>(group[static_cast<std::size_t>(place)])];
          };
          if ((host(a) == host(b)) != (grid.host_of(a) == grid.host_of(b))) return false;
        }
      }
      return true;
    });
  };
  std::optional<HostGrid> found;
  try {
    found = data_grid(mesh, host_of);
  } catch (const UsageError&) {
  }
  if (found) {
    RC_ASSERT(found->hosts * found->ranks_per_host == shape.data);
    RC_ASSERT(fits(*found));
    return;
  }
  for (int hosts = 1; hosts <= shape.data; ++hosts) {
    if (shape.data % hosts != 0) continue;
    RC_ASSERT(!fits({.hosts = hosts, .ranks_per_host = shape.data / hosts}));
  }
}

TEST(HostGrid, RefusalsNameTheCountsAndWhatWouldFit) {
  const std::string begin =
      "parallelism.zero_scope = \"host\" needs as many data-parallel workers on every host, one host after "
      "the other, but ranks ";
  const std::string end = ", or use zero_scope = \"world\"";
  EXPECT_EQ(
      refusal(Mesh(3, {}), {0, 0, 1}),
      begin + "0, 1, 2 are 2 + 1 on 2 hosts: start as many workers on every host (there are 2 + 1)" + end);
  EXPECT_EQ(refusal(Mesh(4, {}), {0, 1, 0, 1}),
            begin + "0, 1, 2, 3 are 2 + 2 on 2 hosts in turns: number the workers host by host" + end);
  EXPECT_EQ(refusal(Mesh(6, {.pipeline = 2}), {0, 0, 1, 1, 2, 2}),
            begin +
                "0, 1, 2 are 2 + 1 on 2 hosts: let parallelism.data divide 2, the workers of a host, or "
                "be a multiple of it" +
                end);
}

}  // namespace
}  // namespace lockstep
