// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/loopback/endpoint.h"
#include "lockstep/transport/routed/endpoint.h"

#include "tests/transport/conformance.h"
#include "tests/transport/shm_world.h"

namespace lockstep::transport {
namespace {

// Two hosts: even ranks share memory with even ones, odd with odd; everybody reaches everybody by the other
// transport.
std::vector<std::unique_ptr<Endpoint>> make_two_hosts(int world) {
  std::vector<std::unique_ptr<Endpoint>> between = make_loopback(world);
  std::vector<std::vector<std::unique_ptr<Endpoint>>> inside;
  inside.push_back(make_shm_world((world + 1) / 2));
  if (world > 1) inside.push_back(make_shm_world(world / 2));
  std::vector<std::unique_ptr<Endpoint>> whole;
  for (Rank rank = 0; rank < world; ++rank) {
    RoutedParts parts;
    parts.rank = rank;
    for (Rank peer = 0; peer < world; ++peer) {
      const bool same_host = peer % 2 == rank % 2;
      parts.routes.push_back(same_host ? Route{.part = 0, .rank = peer / 2} : Route{.part = 1, .rank = peer});
    }
    parts.parts.push_back(
        std::move(inside[static_cast<std::size_t>(rank % 2)][static_cast<std::size_t>(rank / 2)]));
    parts.parts.push_back(std::move(between[static_cast<std::size_t>(rank)]));
    whole.push_back(make_routed(std::move(parts)));
  }
  return whole;
}

INSTANTIATE_TEST_SUITE_P(Routed, Conformance,
                         testing::Values(TransportUnderTest{
                             .name = "two_hosts", .make_world = make_two_hosts, .lands = true}),
                         transport_name);

TEST(Routed, TellsKindsApart) {
  const auto world = make_two_hosts(3);
  EXPECT_EQ(world[0]->kind(2), "shm");
  EXPECT_EQ(world[0]->kind(1), "loopback");
  EXPECT_EQ(world[2]->kind(1), "loopback");
}

TEST(Routed, RefusesRoutesThatLeadNowhere) {
  const auto with_routes = [](std::vector<Route> routes) {
    RoutedParts parts;
    parts.routes = std::move(routes);
    parts.parts.push_back(std::move(make_loopback(2)[0]));
    return make_routed(std::move(parts));
  };
  EXPECT_THROW(with_routes({{.part = 0, .rank = 0}, {.part = 1, .rank = 1}}), UsageError);
  EXPECT_THROW(with_routes({{.part = 0, .rank = 0}, {.part = 0, .rank = 2}}), UsageError);
  EXPECT_THROW(with_routes({{.part = 0, .rank = 1}, {.part = 0, .rank = 0}}), UsageError);
  EXPECT_THROW(with_routes({}), UsageError);
  EXPECT_EQ(with_routes({{.part = 0, .rank = 0}, {.part = 0, .rank = 1}})->world(), 2);
}

}  // namespace
}  // namespace lockstep::transport
