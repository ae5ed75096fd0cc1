// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

INSTANTIATE_TEST_SUITE_P(Loopback, Conformance,
                         testing::Values(TransportUnderTest{
                             .name = "threads", .make_world = make_loopback, .lands = true}),
                         transport_name);

TEST(Loopback, NamesItsKind) {
  const auto world = make_loopback(2);
  EXPECT_EQ(world[0]->kind(1), "loopback");
}

TEST(Loopback, RefusesAnEmptyWorld) {
  EXPECT_THROW(make_loopback(0), UsageError);
}

}  // namespace
}  // namespace lockstep::transport
