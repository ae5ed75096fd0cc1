// SPDX-License-Identifier: Apache-2.0
//
// `lockstep chaos` as users have it.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/train_program.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

using Flags = std::vector<std::string>;

class ChaosProgram : public TrainProgram {
 protected:
  Flags flags(const Flags& more) const {
    Flags all = {"chaos",
                 run_,
                 "--output",
                 folder_.path("chaos"),
                 "--workers",
                 "3",
                 "--validation.freq",
                 "0",
                 "--metrics.enable_tensorboard",
                 "false"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Three runs after one another, on a machine that may have more to do.
  Finished chaos(const Flags& more) const { return Program(flags(more)).finish(std::chrono::seconds(200)); }

  // Processes that work in the folder.
  // After a moment: the kernel kills the workers of a launcher that was killed, and that takes some time.
  std::string left_over() const {
    std::string found;
    for (int i = 0; i < 100; ++i) {
      found = run_shell("pgrep -f '[l]ockstep.*" + folder_.path("chaos") + "'").output;
      if (found.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return found;
  }

  void expect_report(const Finished& finished, std::size_t faults) const {
    ASSERT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    const auto report = nlohmann::json::parse(finished.output);
    EXPECT_EQ(report.at("equal"), true);
    EXPECT_EQ(report.at("losses_different"), 0);
    EXPECT_EQ(report.at("losses_compared"), report.at("steps"));
    EXPECT_EQ(report.at("faults").size(), faults);
    EXPECT_GT(report.at("effective_training_time"), 0.0);
    EXPECT_LE(report.at("effective_training_time"), 1.0);
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_.path("chaos/report.json"))), report);
    EXPECT_EQ(left_over(), "");
  }
};

TEST_F(ChaosProgram, KillsAndResizesLeaveNoTrace) {
  const Finished finished = chaos({"--kills", "2", "--resizes", "2", "--for", "4s", "--json"});
  expect_report(finished, 4);
  const auto report = nlohmann::json::parse(finished.output);
  EXPECT_EQ(report.at("injected").at("kill"), 2);
  EXPECT_EQ(report.at("injected").at("resize"), 2);
  EXPECT_GT(report.at("recovered_s").at("median"), 0.0);
}

TEST_F(ChaosProgram, AnEarlierRunCanBeTheReference) {
  const Finished first = chaos({"--kills", "1", "--for", "2s"});
  ASSERT_EQ(first.exit_code, 0) << first.error_output;
  EXPECT_THAT(first.output, HasSubstr("equal: "));
  EXPECT_THAT(first.output, HasSubstr("equal in all "));
  EXPECT_THAT(first.output, HasSubstr(", at most 1 after one loss"));
  std::filesystem::rename(folder_.path("chaos/undisturbed"), folder_.path("earlier"));
  const Flags with_reference = {
      "--reference", folder_.path("earlier"), "--faults", "all,launcher", "--mtbf", "1s", "--for",
      "2s",          "--checkpoint.interval", "20"};
  expect_refusal(run_program(flags(with_reference)), 2, "holds runs of an earlier time");
  Flags again = with_reference;
  again.insert(again.end(), {"--job.overwrite", "true", "--json"});
  const Finished second = chaos(again);
  ASSERT_EQ(second.exit_code, 0) << second.output << second.error_output;
  EXPECT_EQ(nlohmann::json::parse(second.output).at("equal"), true);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("chaos/undisturbed")));
}

TEST_F(ChaosProgram, ASignalEndsEverything) {
  Program program(flags({"--for", "10m"}));
  for (int i = 0; i < 600 && read_file(folder_.path("chaos/undisturbed/metrics.jsonl")).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  program.signal(SIGINT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 128 + SIGINT) << finished.error_output;
  EXPECT_EQ(left_over(), "");
}

TEST_F(ChaosProgram, TwoDoNotShareAFolder) {
  Program program(flags({"--for", "10m"}));
  for (int i = 0; i < 600 && !std::filesystem::exists(folder_.path("chaos/chaos.lock")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const Finished second = run_program(flags({"--for", "10m"}));
  EXPECT_EQ(second.exit_code, 73) << second.error_output;
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().exit_code, 128 + SIGTERM);
}

TEST_F(ChaosProgram, RefusesWhatCannotBe) {
  const struct {
    Flags flags;
    std::string sentence;
  } cases[] = {
      {{"--mtbf", "soon"}, "--mtbf is 'soon': expected a time such as"},
      {{"--for", "0"}, "--for is '0'"},
      {{"--faults", "kill,flood"}, "--faults is 'flood'"},
      {{"--kills", "-1"}, "--kills is '-1'"},
      {{"--kills", "2", "--faults", "stop"}, "leave out --faults"},
      {{"--kills", "2", "--mtbf", "1s", "--for", "9s"}, "leave out --mtbf"},
      {{"--kills", "9", "--for", "9s", "--gap", "2s"}, "no room for gaps of at least 2 s"},
      {{"--faults", "all"}, "set --checkpoint.interval"},
      {{"--elastic.enabled", "false"}, "elastic.enabled"},
      {{"--checkpoint.enabled", "false"}, "checkpoint.enabled"},
      {{"--parallelism.pipeline", "3", "--resizes", "1"}, "one worker at a time"},
      {{"--against", "slurm"}, "--against is 'slurm'"},
      {{"--against", "torchrun"}, "--against torchrun trains"},
      {{"--reference", folder_.path("nowhere")}, "nowhere"},
      {{"--data.train", folder_.path("nowhere")}, "nowhere"},
  };
  for (const auto& [more, sentence] : cases) {
    SCOPED_TRACE(::testing::PrintToString(more));
    const Finished finished = run_program(flags(more));
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_THAT(finished.error_output, HasSubstr(sentence));
    EXPECT_EQ(lines_in(finished.error_output), 1U) << finished.error_output;
  }
}

}  // namespace
}  // namespace lockstep::testing
