// SPDX-License-Identifier: Apache-2.0
//
// A rank that dies, fails or is late at every failpoint of the meeting, under the launcher of the program.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/failpoints.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class RendezvousFailpoint : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static Finished meet(const std::string& action) {
    const auto& [point, victim] = GetParam();
    return run_shell("\"$LOCKSTEP\" launch -n 3 \"$LOCKSTEP\" doctor --meet --json",
                     {{"LOCKSTEP_FAILPOINTS", fmt::format("{}@rank={}:{}", point, victim, action)}});
  }
  static std::string victim() { return fmt::format("rank {} ", std::get<1>(GetParam())); }
};

TEST_P(RendezvousFailpoint, AKilledRankEndsTheRunAndIsNamed) {
  const Finished finished = meet("kill");
  EXPECT_EQ(finished.exit_code, 128 + 9);
  EXPECT_THAT(finished.error_output, ContainsRegex("lockstep: " + victim() + "\\([^ ]+, pid "));
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9"));
}

TEST_P(RendezvousFailpoint, ARankThatFailsEndsTheRunAndSaysWhy) {
  const Finished finished = meet("throw");
  EXPECT_EQ(finished.exit_code, 70);
  EXPECT_THAT(finished.error_output, HasSubstr("was told to throw"));
}

TEST_P(RendezvousFailpoint, ARankThatIsLateIsWaitedFor) {
  const Finished finished = meet("sleep(300)");
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("failpoint " + std::get<0>(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(All, RendezvousFailpoint,
                         ::testing::Combine(::testing::ValuesIn(test::swept_failpoints("rendezvous.")),
                                            ::testing::Values(0, 1)),
                         [](const auto& test) {
                           return fmt::format("{}_rank_{}", test::test_name_of(std::get<0>(test.param)),
                                              std::get<1>(test.param));
                         });

}  // namespace
}  // namespace lockstep::testing
