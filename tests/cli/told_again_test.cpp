// SPDX-License-Identifier: Apache-2.0
//
// Steps that were saved and not wholly told, because the run was ended while it validated them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/rewritten_manifest.h"
#include "tests/cli/train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using Flags = std::vector<std::string>;

// As a run leaves it that ends while it validates a step whose checkpoint is there: without its record, or
// without its validation loss.
TEST_F(TrainProgram, AStepThatWasSavedAndNotWhollyToldIsToldAgain) {
  const auto train_in = [&](const std::string& run, const Flags& more) {
    Flags flags = {"--checkpoint.interval", "2", "--job.dump_folder", folder_.path(run)};
    flags.insert(flags.end(), more.begin(), more.end());
    return train(flags);
  };
  ASSERT_EQ(train_in("whole", {}).exit_code, 0);
  std::istringstream lines(read_file(folder_.path("whole") + "/metrics.jsonl"));
  std::string first, second;
  ASSERT_TRUE(std::getline(lines, first) && std::getline(lines, second));
  nlohmann::ordered_json without_loss = nlohmann::ordered_json::parse(second);
  ASSERT_EQ(without_loss.erase("validation/loss"), 1);
  for (const std::string& left : {std::string(), without_loss.dump() + "\n"}) {
    const std::string run = left.empty() ? "no_record" : "no_loss";
    std::filesystem::copy(folder_.path("whole"), folder_.path(run), std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(folder_.path(run) + "/checkpoints/step-4");
    folder_.write(run + "/metrics.jsonl", first + "\n" + left);
    for (const char* workers : {"2", "1"}) {  // the second time all has been told
      const Finished ended = train_in(run, {"--resume", "auto", "--workers", workers});
      ASSERT_EQ(ended.exit_code, 0) << ended.error_output;
      const bool tells = ended.output.find("after step 2\n") != std::string::npos;
      EXPECT_EQ(tells, std::string(workers) == "2") << ended.output;
      expect_same_steps(run, "whole");
    }
  }
}

TEST_F(TrainProgram, AStepThatIsToldAgainAndTookNoTimeHasNoSpeed) {
  const Flags flags = {"--training.steps", "1", "--job.dump_folder", folder_.path("run")};
  ASSERT_EQ(train(flags).exit_code, 0);
  folder_.write("run/metrics.jsonl", "");
  rewrite_manifest(folder_.path("run") + "/checkpoints/step-1",
                   [](nlohmann::ordered_json& manifest) { manifest["last_step"]["seconds"] = 0; });
  Flags on = flags;
  on.insert(on.end(), {"--resume", "auto"});
  const Finished again = train(on);
  ASSERT_EQ(again.exit_code, 0) << again.error_output;
  const nlohmann::json told = nlohmann::json::parse(read_file(folder_.path("run") + "/metrics.jsonl"));
  EXPECT_EQ(told.at("step_s"), 0);
  EXPECT_EQ(told.at("tokens_per_s"), 0);
  EXPECT_EQ(told.at("mfu"), 0);
}

TEST_F(TrainProgram, ASkippedStepThatIsToldAgainNamesNoTensor) {
  const Flags flags = {"--training.dtype",
                       "fp16",
                       "--training.initial_loss_scale",
                       "1e9",
                       "--training.steps",
                       "1",
                       "--job.dump_folder",
                       folder_.path("skipped")};
  const Finished first = train(flags);
  ASSERT_EQ(first.exit_code, 0) << first.error_output;
  EXPECT_THAT(first.output, ContainsRegex("step 1 skipped: the gradient of [^ ]+ is not finite\n"));
  const std::vector<nlohmann::json> told = steps_of("skipped");
  folder_.write("skipped/metrics.jsonl", "");
  Flags on = flags;
  on.insert(on.end(), {"--resume", "auto"});
  const Finished again = train(on);
  ASSERT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_THAT(again.output, HasSubstr("step 1 skipped: a gradient is not finite\n"));
  EXPECT_EQ(steps_of("skipped"), told);
}

// Runs whose first validation would never end.
class ValidatingProgram : public TrainProgram {
 protected:
  Flags flags_of(const std::string& run, const Flags& more) const {
    Flags flags = {"--validation.freq", "1", "--job.dump_folder", folder_.path(run)};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  Flags endless(const std::string& run, const Flags& more) const {
    Flags flags = flags_of(run, more);
    flags.insert(flags.begin(),
                 {"train", run_, "--validation.steps", "1000000", "--checkpoint.interval", "1"});
    return flags;
  }

  void wait_for_checkpoint_of_step_1(const std::string& run) {
    const auto newest = [&] { return read_file(folder_.path(run) + "/checkpoints/latest"); };
    for (int tries = 0; tries < 600 && newest().empty(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(newest(), "step-1\n") << "it is committed meanwhile";
    EXPECT_EQ(steps_of(run).size(), 0U) << "and told when it was validated";
  }

  void expect_whole_when_it_goes_on(const std::string& run, const Flags& more) {
    Flags flags = flags_of(run, more);
    flags.insert(flags.end(), {"--resume", "auto"});
    const Finished ended = train(flags);
    ASSERT_EQ(ended.exit_code, 0) << ended.error_output;
    expect_same_steps(run, "whole");
    EXPECT_EQ(hash_of(run), hash_of("whole"));
  }
};

TEST_F(ValidatingProgram, CanBeKilledWhenItsStepIsCommitted) {
  ASSERT_EQ(train(flags_of("whole", {})).exit_code, 0);
  const std::vector<Flags> layouts = {{}, {"--workers", "2", "--elastic.enabled", "false"}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string run = "killed" + std::to_string(i);
    SCOPED_TRACE(run);
    // The failpoint acts when this is gone.
    const std::string held_up = folder_.write(run + ".once", "");
    Program program(endless(run, layouts[i]),
                    {{"LOCKSTEP_FAILPOINTS", fmt::format("train.validating@once={}:kill", held_up)}});
    wait_for_checkpoint_of_step_1(run);
    std::filesystem::remove(held_up);
    EXPECT_EQ(program.finish().exit_code, 137);
    EXPECT_EQ(steps_of(run).size(), 0U);
    expect_whole_when_it_goes_on(run, layouts[i]);
  }
}

TEST_F(ValidatingProgram, IsEndedByASignal) {
  ASSERT_EQ(train(flags_of("whole", {})).exit_code, 0);
  const std::vector<Flags> layouts = {
      {}, {"--workers", "2"}, {"--workers", "2", "--parallelism.pipeline", "2"}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string run = "left" + std::to_string(i);
    SCOPED_TRACE(run);
    Program program(endless(run, layouts[i]));
    wait_for_checkpoint_of_step_1(run);
    program.signal(SIGINT);
    const Finished stopped = program.finish();
    EXPECT_EQ(stopped.exit_code, 75) << stopped.error_output;
    EXPECT_THAT(stopped.output, HasSubstr("stopped after 1 of 4 steps"));
    EXPECT_EQ(steps_of(run).size(), 1U);
    EXPECT_FALSE(steps_of(run).back().contains("validation/loss"));

    expect_whole_when_it_goes_on(run, layouts[i]);
  }
}

}  // namespace
}  // namespace lockstep::testing
