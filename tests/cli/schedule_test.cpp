// SPDX-License-Identifier: Apache-2.0
//
// `lockstep schedule show` as users meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Finished show(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"schedule", "show"});
  return run_program(std::move(flags));
}

TEST(Schedule, DrawsARowPerStageAndTheFigures) {
  const Finished finished = show({"--schedule", "zbv", "--stages", "4", "--micro-batches", "8"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output,
              AllOf(StartsWith("zbv: 4 stages, 8 micro-batches, 2 chunks per stage (v)\nstage 0 F0   F1 "),
                    HasSubstr("\nstage 3 "), HasSubstr("W7.1"), Not(HasSubstr("\033")),
                    HasSubstr("makespan 51, bubble 5.9 % (0.0 % between a stage's first and last pass)\n"),
                    HasSubstr("activations kept at most: 8 8 8 8 by stage")));
}

TEST(Schedule, PrintsJson) {
  const Finished finished = show({"--schedule", "interleaved", "--stages", "2", "--micro-batches", "4",
                                  "--virtual-stages", "2", "--costs", "1,1.5,0.5", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  const json report = json::parse(finished.output);
  EXPECT_EQ(report["schedule"], "interleaved");
  EXPECT_EQ(report["chunks_per_stage"], 2);
  EXPECT_EQ(report["placement"], "round-robin");
  EXPECT_EQ(report["costs"]["backward"], 2.0);
  EXPECT_EQ(report["makespan"], 27.0);
  EXPECT_DOUBLE_EQ(report["bubble"], 1.0 / 9);
  EXPECT_EQ(report["programs"].size(), 2u);
  EXPECT_EQ(report["programs"][1]["peak_live_activations"], 3);
  EXPECT_EQ(report["programs"][1]["passes"][0],
            (json{{"pass", "F"}, {"micro_batch", 0}, {"chunk", 0}, {"begin", 1.0}, {"end", 2.0}}));
}

TEST(Schedule, MessagesTakeTheTimeOfTheLink) {
  const Finished finished =
      show({"--schedule", "gpipe", "--stages", "2", "--micro-batches", "1", "--link", "0.5"});
  EXPECT_THAT(finished.output, HasSubstr("makespan 7, bubble 57.1 % (28.6 %"));
}

TEST(Schedule, WritesAndReadsFiles) {
  const TemporaryFolder folder;
  const std::string csv = folder.path("zbv.csv");
  const std::string svg = folder.path("zbv.svg");
  const Finished made =
      show({"--schedule", "zbv", "--stages", "2", "--micro-batches", "3", "--csv", csv, "--svg", svg});
  EXPECT_EQ(made.exit_code, 0) << made.error_output;
  EXPECT_THAT(read_file(csv), StartsWith("placement,v\nF0,F1,F2,"));
  EXPECT_THAT(
      read_file(svg),
      AllOf(StartsWith("<svg "), HasSubstr("makespan 19"),
            HasSubstr(">activations kept at most: 4 4 by stage, each of one of 2 chunks; 4 are as much "
                      "as 2 of a whole stage</text>"),
            EndsWith("</svg>\n")));
  const Finished again = show({"--from", csv});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_EQ(again.output.substr(again.output.find(": 2 stages")),
            made.output.substr(made.output.find(": 2 stages")));
}

TEST(Schedule, RefusesFilesThatDoNotWork) {
  const TemporaryFolder folder;
  expect_refusal(show({"--from", folder.write("a.csv", "F0,B0\nF0,X0\n")}), 2,
                 "a.csv: row 2, column 2: 'X0' is no pass: expected F, B, I or W");
  expect_refusal(show({"--from", folder.write("b.csv", "F0,B0,F1,B1\nF0,F1,B0,B1\n")}), 2,
                 "b.csv: stage 0, pass 2 (B0): deadlock: waits for the gradient of micro-batch 0 for part 0 "
                 "from rank 1, which itself waits before F1");
  expect_refusal(show({"--from", folder.write("c.csv", "F0\n")}), 2,
                 "c.csv: stage 0, at the end: micro-batch 0 never adds its weight gradient on chunk 0");
  expect_refusal(show({"--from", folder.path("none.csv")}), 2, "none.csv");
}

TEST(Schedule, RefusesBadFlags) {
  expect_refusal(run_program({"schedule"}), 2, "lockstep schedule needs a command");
  expect_refusal(run_program({"schedule", "shwo"}), 2, "did you mean 'show'?");
  expect_refusal(show({}), 2, "lockstep schedule show needs --stages and --micro-batches, or a file with");
  expect_refusal(show({"--stages", "0"}), 2, "--stages is '0': expected a whole number from 1 to 1024");
  expect_refusal(show({"--schedule", "zvb", "--stages", "2", "--micro-batches", "2"}), 2,
                 "unknown pipeline schedule 'zvb': did you mean 'zbv'?");
  expect_refusal(show({"--stages", "2", "--micro-batches", "2", "--virtual-stages", "2"}), 2,
                 "schedule 1f1b has one virtual stage per stage, not 2: choose interleaved");
  for (const char* costs : {"1,1", "1,1,1,1", "1,1,x", "1,0,1", "1,nan,1", "1,,1", "1,1,1,"}) {
    expect_refusal(show({"--stages", "2", "--micro-batches", "2", "--costs", costs}), 2,
                   "expected the times of F, I and W, three numbers from 0.001 to 1000");
  }
  expect_refusal(show({"--stages", "100", "--micro-batches", "1000"}), 2,
                 "the schedule has 200000 passes, and no more than 100000 are shown");
  expect_refusal(show({"--schedule", "a.csv", "--stages", "2", "--micro-batches", "2"}), 2,
                 "--schedule takes a name: give the file as --from a.csv");
  expect_refusal(show({"--from", "a.csv", "--stages", "2"}), 2, "--from gives the whole schedule");
  expect_refusal(show({"--from", "a.csv", "--csv", "b.csv"}), 2, "--csv and --from exclude each other");
}

}  // namespace
}  // namespace lockstep::testing
