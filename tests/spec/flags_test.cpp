// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/unknown.h"

#include "tests/support/error_of.h"

namespace lockstep::spec {
namespace {

using ::testing::HasSubstr;

RunSpec run_of(const std::vector<std::string>& flags) {
  return parse_run("", "", flags);
}

std::string error_of(const std::vector<std::string>& flags) {
  return test::error_of<UsageError>([&] { run_of(flags); });
}

TEST(Flags, SetEveryType) {
  const RunSpec run =
      run_of({"--comm.exact", "false", "--training.steps=12", "--optimizer.lr", "3e-4", "--training.max_norm",
              "2", "--job.dump_folder", "a \"b\" = [c]", "--parallelism.lane_weights", "1,0.5",
              "--data.train", "x,y", "--training.dtype", "bf16", "--parallelism.data", "-1"});
  EXPECT_FALSE(run.comm.exact);
  EXPECT_EQ(run.training.steps, 12);
  EXPECT_EQ(run.optimizer.lr, 3e-4);
  EXPECT_EQ(run.training.max_norm, 2.0);
  EXPECT_EQ(run.job.dump_folder, "a \"b\" = [c]");
  EXPECT_EQ(run.parallelism.lane_weights, (std::vector<double>{1.0, 0.5}));
  EXPECT_EQ(run.data.train, (std::vector<Corpus>{{"x", 1.0}, {"y", 1.0}}));
  EXPECT_EQ(run.training.dtype, DType::bf16);
}

TEST(Flags, TakeListsAsTomlAndDashesForUnderscores) {
  const RunSpec run = run_of({"--data.train", R"([{ path = "a,b", weight = 3 }, "c"])",
                              "--lr-scheduler.warmup-steps=4", "--data.validation="});
  EXPECT_EQ(run.data.train, (std::vector<Corpus>{{"a,b", 3.0}, {"c", 1.0}}));
  EXPECT_EQ(run.lr_scheduler.warmup_steps, 4);
  EXPECT_TRUE(run.data.validation.empty());
}

TEST(Flags, LetTheLastOneOfAKeyWin) {
  EXPECT_EQ(run_of({"--training.steps", "1", "--training.steps", "2"}).training.steps, 2);
}

TEST(Flags, AreRefusedWithTheirName) {
  EXPECT_EQ(error_of({"--training.stpes", "1"}),
            "flag --training.stpes: there is no key 'training.stpes'; did you mean 'training.steps'?");
  EXPECT_EQ(error_of({"--training.steps", "many"}),
            "flag --training.steps: training.steps must be a whole number, not 'many'");
  EXPECT_EQ(error_of({"--training.steps", "99999999999999999999"}),
            "flag --training.steps: training.steps must be a whole number, not '99999999999999999999', which "
            "has too many digits");
  EXPECT_EQ(error_of({"--training.steps"}), "flag --training.steps: must be followed by a whole number");
  EXPECT_EQ(error_of({"--training.steps", "0"}),
            "flag --training.steps: training.steps must be 1 or more, not 0");
  EXPECT_EQ(error_of({"--steps", "1"}),
            "'--steps' is not the flag of a key; did you mean '--training.steps'?");
  EXPECT_EQ(error_of({"run.toml"}), "'run.toml' is not the flag of a key, such as --training.steps");
}

TEST(MeantFlag, IsThatOfACommandOrOfAKey) {
  const std::vector<std::string> own = {"--workers", "--resume", "--init-from", "-n"};
  EXPECT_EQ(meant_flag("--workres", own), "--workers");
  EXPECT_EQ(meant_flag("--worker", own), "--workers");
  EXPECT_EQ(meant_flag("--resum", own), "--resume");
  EXPECT_EQ(meant_flag("--resum"), "--checkpoint.resume");
  EXPECT_EQ(meant_flag("--init_from", own), "--init-from");
  EXPECT_EQ(meant_flag("--steps", own), "--training.steps");
  EXPECT_EQ(meant_flag("--lr", own), "--optimizer.lr");
  EXPECT_EQ(meant_flag("--warmup-step", own), "--lr_scheduler.warmup_steps");
  EXPECT_EQ(meant_flag("--nothing-like-it", own), "");
  EXPECT_EQ(meant_flag("-x", own), "");
}

TEST(Flags, CannotSmuggleKeysOrBrokenText) {
  for (const std::string line_break : {"\n", "\r\n", "\r"}) {
    EXPECT_THAT(error_of({"--training.steps", "1" + line_break + "[job]" + line_break + "dump_folder = 'x'"}),
                HasSubstr("training.steps must be one line without control characters"));
  }
  EXPECT_THAT(error_of({"--training.steps", "1, dump_folder = 'x'"}), HasSubstr("must be a whole number"));
  EXPECT_THAT(error_of({"--job.dump_folder", "\xff"}), HasSubstr("must be a text"));
  EXPECT_THAT(error_of({"--training.steps", ""}), HasSubstr("must be a whole number"));
}

TEST(SplitKeyFlags, TellsKeysFromOtherArguments) {
  const std::vector<std::string> arguments = {"run.toml",          "--workers", "4",
                                              "--training.steps",  "--x",       "--json",
                                              "--optimizer.lr=.1", "rest",      "--comm.exact"};
  const SplitArguments split = split_key_flags(arguments);
  EXPECT_EQ(split.key_flags,
            (std::vector<std::string>{"--training.steps", "--x", "--optimizer.lr=.1", "--comm.exact"}));
  EXPECT_EQ(split.others, (std::vector<std::string>{"run.toml", "--workers", "4", "--json", "rest"}));
}

}  // namespace
}  // namespace lockstep::spec
