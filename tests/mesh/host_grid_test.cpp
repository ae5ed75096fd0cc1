// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/host_grid.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

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
