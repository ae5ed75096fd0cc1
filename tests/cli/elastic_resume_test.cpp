// SPDX-License-Identifier: Apache-2.0
//
// Runs that begin with what another one has left, and lose all their workers.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/elastic_program.h"
#include "tests/cli/rewritten_manifest.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

class ElasticResume : public ElasticProgram {
 protected:
  ElasticResume() : ElasticProgram(90) {}

  std::string checkpoint_of_whole(int step) const {
    return fmt::format("{}/checkpoints/step-{}", folder_.path("whole"), step);
  }

  void wait_for_a_checkpoint(const std::string& run) const {
    for (int i = 0; i < 3000 && read_file(folder_.path(run) + "/checkpoints/latest").empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  // All workers at once, after a few steps.
  Finished trained_with_a_loss(const std::string& run, Flags more) {
    more.insert(more.end(), {"--workers", "2"});
    Program program(flags_of(run, more));
    wait_for_steps(run, 3);
    for (const pid_t worker : workers_of(run)) ::kill(worker, SIGKILL);
    return program.finish();
  }

  // The run is the other one from behind this step on, each step once.
  void expect_rest_of_whole(const std::string& run, const Finished& finished, int begin) {
    ASSERT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    std::vector<nlohmann::json> rest = steps_of("whole");
    rest.erase(rest.begin(), rest.begin() + begin);
    EXPECT_EQ(steps_of(run), rest);
    EXPECT_EQ(hash_of(run), hash_of("whole"));
  }
};

TEST_F(ElasticResume, WhatItWasBegunWithIsTakenAgainBeforeItsFirstCheckpoint) {
  train_whole({"--checkpoint.interval", "30", "--checkpoint.keep_last", "3"});
  expect_rest_of_whole("on", trained_with_a_loss("on", {"--resume", checkpoint_of_whole(30)}), 30);
  // The folder knows of decisions and of a checkpoint now, and another run takes it.
  const Flags over = {"--resume", checkpoint_of_whole(60), "--job.overwrite", "true", "--workers", "2"};
  expect_rest_of_whole("on", run_program(flags_of("on", over)), 60);
}

TEST_F(ElasticResume, ItsOwnCheckpointIsTakenOnceThereIsOne) {
  train_whole({"--checkpoint.interval", "30", "--checkpoint.keep_last", "3"});
  // The one that it was begun with is gone by then.
  std::filesystem::rename(checkpoint_of_whole(30), folder_.path("begin"));
  Program program(
      flags_of("on", {"--resume", folder_.path("begin"), "--checkpoint.interval", "5", "--workers", "2"}));
  wait_for_a_checkpoint("on");
  std::filesystem::remove_all(folder_.path("begin"));
  for (const pid_t worker : workers_of("on")) ::kill(worker, SIGKILL);
  const Finished finished = program.finish();
  expect_rest_of_whole("on", finished, 30);
  EXPECT_THAT(finished.output, HasSubstr("resumed " + folder_.path("on") + "/checkpoints/step-"));
}

// Such as versions of before have made.
TEST_F(ElasticResume, AStepThatItsCheckpointDoesNotDescribeIsNotToldAgain) {
  train_whole({"--checkpoint.interval", "30", "--checkpoint.keep_last", "3"});
  std::filesystem::copy(folder_.path("whole"), folder_.path("old"), std::filesystem::copy_options::recursive);
  const std::string checkpoints = folder_.path("old") + "/checkpoints";
  std::filesystem::remove_all(checkpoints + "/step-60");
  std::filesystem::remove_all(checkpoints + "/step-90");
  rewrite_manifest(checkpoints + "/step-30",
                   [](nlohmann::ordered_json& manifest) { manifest.erase("last_step"); });
  const Finished finished = run_program(flags_of("old", {"--workers", "2", "--resume", "auto"}),
                                        dies_at("train.step.begun", 1, 31, "old"));
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("workers? went on after step 30"));
  expect_whole("old", finished);
}

// There is no mirror of it: memory has no room for what is on a disk.
TEST_F(ElasticResume, AShareOnADiskIsTakenFromTheNewestCheckpoint) {
  const Flags on_disk = {"--zero.offload",        "disk", "--parallelism.zero_stage", "1",
                         "--checkpoint.interval", "5"};
  train_whole(on_disk);
  Flags flags = on_disk;
  flags.insert(flags.end(), {"--workers", "2"});
  Program program(flags_of("lost", flags));
  wait_for_a_checkpoint("lost");
  ::kill(workers_of("lost").back(), SIGKILL);
  const Finished finished = program.finish();
  expect_whole("lost", finished);
  EXPECT_THAT(finished.output, HasSubstr("resumed " + folder_.path("lost") + "/checkpoints/step-"));
}

TEST_F(ElasticResume, WeightsThatItWasBegunWithAreTakenAgain) {
  ASSERT_EQ(run_program(flags_of("first", {"--training.steps", "20"})).exit_code, 0);
  const Flags from = {"--init-from", folder_.path("first")};
  train_whole(from);
  expect_whole("again", trained_with_a_loss("again", from));
}

TEST_F(ElasticResume, WeightsThatItWasBegunWithMayBeGoneWhenOthersHaveNewerOnes) {
  ASSERT_EQ(run_program(flags_of("first", {"--training.steps", "20"})).exit_code, 0);
  const Flags from = {"--init-from", folder_.path("first")};
  train_whole(from);
  Program program(flags_of("later", {"--init-from", folder_.path("first"), "--workers", "2"}));
  wait_for_steps("later", 3);
  std::filesystem::remove_all(folder_.path("first"));
  ::kill(workers_of("later").back(), SIGKILL);
  expect_whole("later", program.finish());
}

TEST_F(ElasticResume, WeightsThatItWasBegunWithMayBeGoneWhenItHasACheckpoint) {
  ASSERT_EQ(run_program(flags_of("first", {"--training.steps", "20"})).exit_code, 0);
  const Flags from = {"--init-from", folder_.path("first"), "--checkpoint.interval", "5"};
  train_whole(from);
  Flags flags = from;
  flags.insert(flags.end(), {"--workers", "2"});
  Program program(flags_of("later", flags));
  wait_for_a_checkpoint("later");
  std::filesystem::remove_all(folder_.path("first"));
  for (const pid_t worker : workers_of("later")) ::kill(worker, SIGKILL);
  expect_whole("later", program.finish());
}

}  // namespace
}  // namespace lockstep::testing
