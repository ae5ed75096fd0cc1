// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train` on workers that compute each layer together, as users call it.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/layout_program.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

using TensorProgram = LayoutProgram;

Flags joined(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST_F(TensorProgram, SharedLayersTrainAsOneProcessDoes) {
  const Flags common = {"--training.dtype",           "bf16", "--model.dropout", "0.1",
                        "--parallelism.tensor_lanes", "4"};
  const std::map<std::string, Flags> layouts = {
      {"alone", {}},
      {"shared", {"--workers", "2", "--parallelism.tensor", "2"}},
      {"tokens", {"--workers", "4", "--parallelism.tensor", "4", "--parallelism.sequence_parallel", "true"}},
      {"three",
       {"--workers", "8", "--parallelism.tensor", "2", "--parallelism.pipeline", "2",
        "--parallelism.zero_stage", "3", "--parallelism.sequence_parallel", "true"}}};
  for (const auto& [run, layout] : layouts) {
    const Finished finished = train_as(run, joined(common, layout));
    ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_TRUE(steps_of(run).at(1).contains("validation/loss"));
    expect_same_runs(run, "alone");
    if (run != "three") continue;
    EXPECT_THAT(finished.output,
                HasSubstr("8 workers (2 data-parallel x 2 tensor-parallel x 2 stages of 1f1b)"));
  }
  expect_same_words("shared", "alone");
}

TEST_F(TensorProgram, LayersOfASavedModelAreShared) {
  ASSERT_EQ(train_as("first", {"--training.steps", "2"}).exit_code, 0);
  const Flags further = {"--checkpoint.initial_load_path",
                         folder_.path("first") + "/model",
                         "--training.steps",
                         "2",
                         "--parallelism.tensor_lanes",
                         "4"};
  ASSERT_EQ(train_as("alone", further).exit_code, 0);
  EXPECT_NE(steps_of("alone").front().at("loss"), steps_of("first").front().at("loss"));
  const Finished finished =
      train_as("shared", joined(further, {"--workers", "4", "--parallelism.tensor", "2"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  expect_same_runs("shared", "alone");
}

TEST_F(TensorProgram, AllSkipTheStepsThatOneProcessSkips) {
  const Flags large_scale = {
      "--training.dtype",  "fp16", "--training.initial_loss_scale", "1e8", "--training.steps", "8",
      "--validation.freq", "0",    "--parallelism.tensor_lanes",    "2"};
  ASSERT_EQ(train_as("alone", large_scale).exit_code, 0);
  EXPECT_TRUE(steps_of("alone").front().contains("skipped"));
  EXPECT_FALSE(steps_of("alone").back().contains("skipped"));
  const Finished finished = train_as("shared", joined(large_scale, {"--workers", "4", "--parallelism.tensor",
                                                                    "2", "--parallelism.zero_stage", "3"}));
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("step 1 skipped: the gradient of "));
  expect_same_runs("shared", "alone");
}

TEST_F(TensorProgram, VerifyComparesWithOneProcess) {
  const Finished finished = run_program({"verify", run_, "--workers", "4", "--steps", "2",
                                         "--parallelism.tensor", "2", "--parallelism.pipeline", "2"});
  EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("identical: 2 steps on 1 process and on 4;"));
}

TEST_F(TensorProgram, AnAxisTakesTheWorkersThatOthersLeave) {
  const Flags tensor = {"--workers", "2", "--parallelism.tensor", "-1"};
  const Flags pipeline = {"--workers", "2", "--parallelism.pipeline", "-1", "--parallelism.data", "1"};
  for (const std::string elastic : {"true", "false"}) {
    const Flags flags = {"--elastic.enabled", elastic};
    const Finished shared = train_as("tensor" + elastic, joined(tensor, flags));
    ASSERT_EQ(shared.exit_code, 0) << shared.error_output;
    EXPECT_THAT(shared.output, HasSubstr("2 workers (1 data-parallel x 2 tensor-parallel)"));
    const Finished stages = train_as("stages" + elastic, joined(pipeline, flags));
    ASSERT_EQ(stages.exit_code, 0) << stages.error_output;
    EXPECT_THAT(stages.output, HasSubstr("2 workers (1 data-parallel x 2 stages of 1f1b)"));
  }
  EXPECT_THAT(read_file(folder_.path("tensortrue") + "/resolved.toml"), HasSubstr("tensor = 2\n"));
  const Finished verified = run_program({"verify", run_, "--workers", "4", "--steps", "2",
                                         "--parallelism.tensor", "2", "--parallelism.pipeline", "-1"});
  EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.error_output;
}

TEST_F(TensorProgram, MistakesGetOneSentenceBeforeAnythingIsStarted) {
  struct Mistake {
    Flags flags;
    std::string sentence;
  };
  for (const Mistake& mistake : {
           Mistake{{"--workers", "3", "--parallelism.tensor", "3"},
                   "flag --parallelism.tensor: parallelism.tensor = 3 must be a power of two: take 2 or 4"},
           {{"--workers", "3", "--parallelism.tensor", "2"},
            "flag --parallelism.tensor: a mesh of pipeline 1 x data -1 x tensor 2 cannot be filled by 3 "
            "workers; start 2 or 4 workers, "
            "or "
            "set tensor to 1, or set pipeline to 3 and tensor to 1"},
           {{"--workers", "6", "--parallelism.tensor", "4", "--parallelism.pipeline", "4"},
            "flag --parallelism.tensor: a mesh of pipeline 4 x data -1 x tensor 4 cannot be filled by 6 "
            "workers; start 16 workers, or "
            "set "
            "pipeline to 3 and tensor to 2, or set pipeline to 3 and tensor to 1"},
           {{"--workers", "6", "--parallelism.tensor", "-1", "--parallelism.pipeline", "-1"},
            "flag --parallelism.tensor: parallelism.tensor and parallelism.pipeline cannot both be -1, the "
            "rest of the workers: give one of them a size"},
           {{"--workers", "4", "--parallelism.tensor", "4", "--parallelism.tensor_lanes", "2"},
            "flag --parallelism.tensor_lanes: parallelism.tensor = 4 does not divide "
            "parallelism.tensor_lanes = 2; take 1 or 2"},
           {{"--workers", "8", "--parallelism.tensor", "8"},
            "flag --parallelism.tensor: model.heads = 4 cannot be divided among parallelism.tensor_lanes = "
            "8; take model.heads = 8, or "
            "parallelism.tensor = 4"},
       }) {
    expect_refusal(train_as("refused", mistake.flags), 2, "lockstep: " + mistake.sentence + "\n");
    EXPECT_FALSE(std::filesystem::exists(folder_.path("refused"))) << mistake.sentence;
  }
}

TEST_F(TensorProgram, AWorkerThatIsKilledOrFreezesIsNamed) {
  const Flags flags = {"--workers", "4", "--parallelism.tensor", "2", "--comm.train_timeout_seconds", "2"};
  const Finished killed = signal_the_last_worker(flags, "killed", "KILL");
  EXPECT_EQ(killed.exit_code, 137) << killed.error_output;
  EXPECT_THAT(killed.error_output, ContainsRegex("rank 3 \\([^ ]+, pid "));
  const Finished frozen = signal_the_last_worker(flags, "frozen", "STOP");
  EXPECT_EQ(frozen.exit_code, 75) << frozen.error_output;
  EXPECT_THAT(frozen.error_output, ContainsRegex("rank 3 (silent|has not arrived)|waits for rank 3"));
}

}  // namespace
}  // namespace lockstep::testing
