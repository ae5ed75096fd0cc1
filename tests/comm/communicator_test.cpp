// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/communicator.h"

#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/comm/collective_cases.h"
#include "tests/support/ranks.h"
#include "tests/support/worlds.h"

namespace lockstep::test {
namespace {

// Every case over every transport, with ranks as threads.
class Conformance : public testing::TestWithParam<std::tuple<std::string, int, CollectiveCase>> {};

TEST_P(Conformance, Holds) {
  const auto& [transport, world, collective_case] = GetParam();
  run_ranks(make_world(transport, world), {}, collective_case.run);
}

std::string name_of_case(const testing::TestParamInfo<Conformance::ParamType>& info) {
  return fmt::format("{}_{}_{}", std::get<0>(info.param), std::get<1>(info.param),
                     std::get<2>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Loopback, Conformance,
                         testing::Combine(testing::Values("loopback"), testing::Values(1, 2, 3, 4, 5, 6, 8),
                                          testing::ValuesIn(collective_cases())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Connected, Conformance,
                         testing::Combine(testing::Values("shm", "tcp", "routed"), testing::Values(2, 3, 4),
                                          testing::ValuesIn(collective_cases())),
                         name_of_case);

TEST(Communicator, AWorldOfOneNeedsNoPeers) {
  comm::Communicator alone;
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.rank(), 0);
  for (const CollectiveCase& each : collective_cases()) {
    SCOPED_TRACE(each.name);
    each.run(alone);
  }
}

}  // namespace
}  // namespace lockstep::test
