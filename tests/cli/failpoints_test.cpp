// SPDX-License-Identifier: Apache-2.0
//
// `lockstep failpoints`, and the variable that arms them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/failpoint_table.h"

#include "tests/cli/program.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Failpoints, ListsEveryNameWithItsSourceAndPhase) {
  const Finished finished = run_program({"failpoints"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, MatchesRegex("name +source +phase\n(.|\n)*"));
  EXPECT_EQ(lines_in(finished.output), 1 + failpoint::kPoints.size());
  for (const failpoint::Point& point : failpoint::kPoints) {
    EXPECT_THAT(finished.output, HasSubstr("\n" + std::string(point.name) + " "));
    EXPECT_THAT(finished.output, HasSubstr("  " + std::string(point.phase) + "\n"));
  }
}

TEST(Failpoints, PrintsJson) {
  const json report = json::parse(run_program({"failpoints", "--json"}).output);
  EXPECT_EQ(report["built"], true);
  ASSERT_EQ(report["failpoints"].size(), failpoint::kPoints.size());
  for (std::size_t i = 0; i < failpoint::kPoints.size(); ++i) {
    EXPECT_EQ(report["failpoints"][i]["name"], failpoint::kPoints[i].name);
    EXPECT_EQ(report["failpoints"][i]["source"], failpoint::kPoints[i].where);
    EXPECT_EQ(report["failpoints"][i]["phase"], failpoint::kPoints[i].phase);
  }
}

TEST(Failpoints, ABadVariableIsRefusedByEveryCommand) {
  expect_refusal(
      run_program({"doctor"}, {{"LOCKSTEP_FAILPOINTS", "checkpoint.begn:kill"}}), 2,
      "LOCKSTEP_FAILPOINTS: unknown failpoint 'checkpoint.begn': did you mean 'checkpoint.begun'?");
}

TEST(Failpoints, AnEmptyVariableArmsNothing) {
  EXPECT_EQ(run_program({"failpoints"}, {{"LOCKSTEP_FAILPOINTS", ""}}).error_output, "");
  EXPECT_THAT(run_program({"failpoints"}, {{"LOCKSTEP_FAILPOINTS", "checkpoint.begun:kill"}}).error_output,
              HasSubstr("LOCKSTEP_FAILPOINTS arms failpoints"));
}

}  // namespace
}  // namespace lockstep::testing
