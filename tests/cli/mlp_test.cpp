// SPDX-License-Identifier: Apache-2.0
//
// The example of an mlp, as its first lines say it is started.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

const std::string kExample = std::string(LOCKSTEP_EXAMPLES) + "/mlp";

class MlpProgram : public ::testing::Test {
 protected:
  MlpProgram() {
    EXPECT_EQ(run_shell("python3 " + kExample + "/make_data.py " + folder_.path("d")).exit_code, 0);
  }

  Finished train(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"train", kExample + "/run.toml", "--data.train", folder_.path("d/train.npy"),
                                 "--data.validation", folder_.path("d/validation.npy")});
    return run_program(std::move(flags));
  }

  // Loss, gradient norm and validation loss of every step.
  std::vector<nlohmann::json> steps_of(const std::string& run) {
    std::istringstream lines(read_file(folder_.path(run) + "/metrics.jsonl"));
    std::vector<nlohmann::json> steps;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json step = nlohmann::json::parse(line);
      steps.push_back({step["loss"], step["grad_norm"], step.value("validation/loss", 0.0)});
    }
    return steps;
  }

  TemporaryFolder folder_;
};

TEST_F(MlpProgram, TheBitsDoNotDependOnTheNumberOfWorkers) {
  for (const char* sharding : {"sample", "batch", "feature"}) {
    std::vector<nlohmann::json> alone;
    for (const char* workers : {"1", "2", "3"}) {
      const std::string run = std::string(sharding) + workers;
      const Finished finished = train({"--workers", workers, "--data.sharding", sharding, "--training.steps",
                                       "60", "--job.dump_folder", folder_.path(run)});
      ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
      const std::vector<nlohmann::json> steps = steps_of(run);
      ASSERT_EQ(steps.size(), 60U);
      EXPECT_GT(steps[49][2].get<double>(), 0.0) << "no validation loss";
      if (alone.empty()) alone = steps;
      EXPECT_EQ(steps, alone) << workers << " workers, sharding by " << sharding;
    }
  }
}

TEST_F(MlpProgram, GoesOnWithOtherWorkersWhereItWasSaved) {
  for (const char* sharding : {"sample", "batch", "feature"}) {
    const std::string whole = std::string(sharding) + "-whole";
    const std::string cut = std::string(sharding) + "-cut";
    const auto run = [&](const std::string& name, const char* workers, const char* steps,
                         std::vector<std::string> more) {
      more.insert(more.end(), {"--workers", workers, "--data.sharding", sharding, "--training.steps", steps,
                               "--validation.freq", "15", "--lr_scheduler.decay_type", "constant",
                               "--job.dump_folder", folder_.path(name)});
      const Finished finished = train(std::move(more));
      ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    };
    run(whole, "1", "30", {});
    run(cut, "1", "15", {});
    run(cut, "3", "30", {"--resume", "auto"});
    EXPECT_EQ(steps_of(cut), steps_of(whole)) << "sharding by " << sharding;
    const auto hash_of = [&](const std::string& name) {
      const Finished finished = run_program({"checkpoint", "hash", folder_.path(name)});
      EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
      return finished.output.substr(0, 32);
    };
    EXPECT_EQ(hash_of(cut), hash_of(whole));
  }
}

TEST_F(MlpProgram, ACorruptFileEndsWithItsNameAndOffset) {
  const std::string file = folder_.path("d/train.npy");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  const Finished finished = train({"--job.dump_folder", folder_.path("run")});
  EXPECT_EQ(finished.exit_code, 65);
  EXPECT_THAT(finished.error_output, HasSubstr(file + " at byte "));
  EXPECT_EQ(lines_in(finished.error_output), 1) << finished.error_output;
}

}  // namespace
}  // namespace lockstep::testing
