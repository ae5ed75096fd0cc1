// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/train_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::cli {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  return test::error_of<UsageError>([&] { split_arguments("train", words); });
}

TEST(TrainArguments, AreToldApartInAnyOrder) {
  const TrainArguments split =
      split_arguments("train", Words{"--training.steps", "5", "--workers=3", "run.toml", "--resume", "auto",
                                     "--init-from=a", "--optimizer.lr", "-1"});
  EXPECT_EQ(split.file, "run.toml");
  EXPECT_EQ(split.workers, 3);
  EXPECT_THAT(split.key_flags, ElementsAre("--training.steps", "5", "--checkpoint.resume", "auto",
                                           "--checkpoint.initial_load_path=a", "--optimizer.lr", "-1"));
}

TEST(TrainArguments, ThatThereAreNotAreRefusedWithTheOneThatWasMeant) {
  const auto unknown = [](const std::string& flag, const std::string& meant) {
    return "unknown flag of lockstep train '" + flag + "': did you mean '" + meant + "'?";
  };
  EXPECT_EQ(refusal({"run.toml", "--workres", "2"}), unknown("--workres", "--workers"));
  EXPECT_EQ(refusal({"--worker=2", "run.toml"}), unknown("--worker", "--workers"));
  EXPECT_EQ(refusal({"run.toml", "--resum", "auto"}), unknown("--resum", "--resume"));
  EXPECT_EQ(refusal({"run.toml", "--init_from", "x"}), unknown("--init_from", "--init-from"));
  EXPECT_EQ(refusal({"run.toml", "--listne", "x"}), unknown("--listne", "--listen"));
  EXPECT_EQ(refusal({"run.toml", "--steps", "100"}), unknown("--steps", "--training.steps"));
  EXPECT_EQ(refusal({"run.toml", "--lr", "3"}), unknown("--lr", "--optimizer.lr"));
  EXPECT_EQ(refusal({"run.toml", "--nothing-like-it"}),
            "unknown flag of lockstep train '--nothing-like-it': `lockstep train --help` lists them");
  EXPECT_EQ(refusal({"run.toml", "-x"}),
            "unknown flag of lockstep train '-x': `lockstep train --help` lists them");
}

TEST(TrainArguments, AskForHelpAnywhereButAsTheValueOfAKey) {
  for (const Words& words :
       {Words{"run.toml", "-h"}, {"--workers", "2", "--help"}, {"--help", "--workres"}}) {
    EXPECT_TRUE(split_arguments("train", words).asks_for_help);
  }
  EXPECT_FALSE(split_arguments("train", Words{"run.toml", "--job.description", "-h"}).asks_for_help);
}

TEST(TrainArguments, HaveOneRunFile) {
  EXPECT_EQ(
      refusal({"run.toml", "other.toml"}),
      "lockstep train does not take 'other.toml' after the run file 'run.toml': `lockstep train --help` "
      "lists what it takes");
  EXPECT_EQ(refusal({"--training.steps", "5"}),
            "no run file: write it first, as in `lockstep train run.toml --workers 2`");
}

}  // namespace
}  // namespace lockstep::cli
