// SPDX-License-Identifier: Apache-2.0
//
// `lockstep verify` and `lockstep bench train`, `memory` and `kernels` as users run them, on models that
// take moments.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/data/corpus/megatron_writer.h"

#include "tests/cli/bench_train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string small_run(const TemporaryFolder& folder) {
  std::vector<data::Token> tokens(5000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<data::Token>(i * i % 97);
  data::MegatronWriter writer(folder.path("tokens"), data::TokenType::uint16);
  writer.add(tokens, true);
  writer.finish();
  return folder.write("run.toml",
                      "[model]\nname = \"llama\"\nlayers = 2\nwidth = 32\nheads = 4\nkv_heads = 2\n"
                      "vocab_size = 97\n[data]\ntrain = [\"" +
                          folder.path("tokens") +
                          "\"]\n[training]\nsteps = 10\nseq_len = 16\nmicro_batch_size = 2\n"
                          "global_batch_size = 16\ndtype = \"bf16\"\n[parallelism]\nlanes = 4\n");
}

TEST(Verify, SeveralProcessesHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  for (const std::string workers : {"2", "3"}) {
    const Finished finished = run_program({"verify", run, "--workers", workers, "--steps", "3"});
    EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.error_output;
    EXPECT_THAT(finished.output, HasSubstr("identical: 3 steps on 1 process and on " + workers));
  }
}

// Rank 1 takes many times as long as rank 0, so that lanes leave it.
Environment with_slow_rank() {
  return {{"LOCKSTEP_FAILPOINTS", "train.forward@rank=1:sleep(20)"}};
}

TEST(Verify, LanesThatMoveHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  using Flags = std::vector<std::string>;
  for (const Flags& flags :
       {Flags{}, Flags{"--parallelism.zero_stage", "3", "--parallelism.lane_weights", "[1, 3]"}}) {
    Flags command = {"verify", run, "--workers", "2", "--steps", "4", "--parallelism.rebalance_freq", "1"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Finished finished = run_program(command, with_slow_rank());
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_THAT(
        finished.output,
        ContainsRegex("identical: 4 steps on 1 process and on 2, whose lanes moved after [1-3] of them;"));
  }
}

TEST(Verify, JsonSaysHowOftenLanesMoved) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  const auto moves = [&](const std::string& steps) {
    const Finished finished = run_program(
        {"verify", run, "--steps", steps, "--parallelism.rebalance_freq", "1", "--json"}, with_slow_rank());
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return nlohmann::json::parse(finished.output).at("lane_moves").get<int>();
  };
  EXPECT_GT(moves("4"), 0);
  EXPECT_EQ(moves("1"), 0) << "no step comes after them";
}

TEST(Verify, LanesOfUnevenWorkersAndUpdatesThatAreNotSharedOutHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  using Flags = std::vector<std::string>;
  for (const Flags& flags :
       {Flags{"--parallelism.lane_weights", "[1, 3]"}, Flags{"--parallelism.zero_stage", "0"},
        Flags{"--comm.all_reduce", "halving_doubling"}, Flags{"--zero.offload", "disk"}}) {
    const Finished finished =
        run_program({"verify", run, "--workers", "2", "--steps", "4", flags[0], flags[1]});
    EXPECT_EQ(finished.exit_code, 0) << flags[0] << ": " << finished.output << finished.error_output;
  }
}

TEST(Verify, GradientsAndWeightsThatAreSharedOutHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  using Flags = std::vector<std::string>;
  for (const auto& [workers, flags] :
       {std::pair{"2", Flags{"--parallelism.zero_stage", "2", "--training.dtype", "fp16"}},
        {"3", Flags{"--parallelism.zero_stage", "3", "--parallelism.recompute", "all"}},
        {"2", Flags{"--zero.offload", "disk", "--parallelism.recompute", "2"}},
        {"4", Flags{"--parallelism.zero_stage", "3", "--parallelism.pipeline", "2"}},
        {"4", Flags{"--parallelism.zero_stage", "3", "--parallelism.zero_scope", "host", "--hosts", "2"}}}) {
    Flags command = {"verify", run, "--workers", workers, "--steps", "3"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Finished finished = run_program(command);
    EXPECT_EQ(finished.exit_code, 0) << flags[1] << " on " << workers << ": " << finished.output
                                     << finished.error_output;
  }
}

TEST(Verify, PipelinesHaveTheBitsOfOne) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  using Flags = std::vector<std::string>;
  for (const auto& [workers, flags] :
       {std::pair{"2", Flags{"--parallelism.pipeline", "2"}},
        {"4", Flags{"--parallelism.pipeline", "2", "--parallelism.schedule", "zbv"}},
        {"3", Flags{"--parallelism.pipeline", "3", "--parallelism.schedule", "zbh1", "--training.dtype",
                    "fp16", "--model.tied_embeddings", "false"}},
        {"2", Flags{"--parallelism.pipeline", "2", "--parallelism.schedule", "interleaved",
                    "--parallelism.virtual_stages", "2", "--parallelism.part_blocks", "[1, 1, 1, 1]"}}}) {
    Flags command = {"verify", run, "--workers", workers, "--steps", "3"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Finished finished = run_program(command);
    EXPECT_EQ(finished.exit_code, 0) << flags.back() << ": " << finished.output << finished.error_output;
  }
}

// What is compared are steps that are trained, also of a run that goes on from its last one.
TEST(Verify, ARunThatIsResumedIsComparedFromItsBeginning) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  const std::string done = folder.path("done");
  ASSERT_EQ(run_program({"train", run, "--job.dump_folder", done}).exit_code, 0);
  const Finished finished =
      run_program({"verify", run, "--steps", "2", "--checkpoint.resume", done, "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  const auto same = nlohmann::json::parse(finished.output);
  EXPECT_EQ(same.at("steps"), 2);
  EXPECT_GT(same.at("compared"), 2);
  const Finished from_weights = run_program({"verify", run, "--steps", "1", "--checkpoint.resume", done,
                                             "--checkpoint.initial_load_path", done + "/model"});
  EXPECT_EQ(from_weights.exit_code, 0) << from_weights.error_output;
}

TEST(Verify, ADifferenceIsNamed) {
  const TemporaryFolder folder;
  const Finished finished = run_program({"verify", small_run(folder), "--workers", "3", "--steps", "2",
                                         "--comm.exact", "false", "--comm.all_reduce", "ring"});
  EXPECT_EQ(finished.exit_code, 1) << finished.output << finished.error_output;
  EXPECT_THAT(
      finished.output,
      MatchesRegex("different: step 1, the gradient of model\\.[a-z0-9_.]+\\.weight on rank 0 of 3 is not "
                   "that of one process\n"));
}

TEST(Verify, JsonSaysWhatWasComparedAndWhatDiffers) {
  const TemporaryFolder folder;
  const std::string run = small_run(folder);
  const Finished same = run_program({"verify", run, "--steps", "1", "--json"});
  EXPECT_EQ(same.exit_code, 0) << same.error_output;
  const auto identical = nlohmann::json::parse(same.output);
  EXPECT_EQ(identical.at("identical"), true);
  EXPECT_EQ(identical.at("steps"), 1);
  EXPECT_EQ(identical.at("workers"), 2);
  EXPECT_GT(identical.at("compared"), 2);
  EXPECT_FALSE(identical.contains("difference"));

  const Finished other = run_program({"verify", run, "--workers", "3", "--steps", "1", "--comm.exact",
                                      "false", "--comm.all_reduce", "ring", "--json"});
  EXPECT_EQ(other.exit_code, 1) << other.error_output;
  const auto different = nlohmann::json::parse(other.output);
  EXPECT_EQ(different.at("identical"), false);
  const auto& difference = different.at("difference");
  EXPECT_EQ(difference.at("step"), 1);
  EXPECT_EQ(difference.at("what"), "gradient");
  EXPECT_THAT(difference.at("tensor").get<std::string>(), HasSubstr("model."));
  EXPECT_EQ(difference.at("rank"), 0);
}

TEST(Verify, EveryHostHasAWorker) {
  const TemporaryFolder folder;
  const Finished finished = run_program({"verify", small_run(folder), "--workers", "2", "--hosts", "3"});
  EXPECT_EQ(finished.exit_code, 2) << finished.output;
  EXPECT_THAT(finished.error_output, HasSubstr("--hosts is 3, but --workers is 2"));
}

TEST(Verify, EndsAsItsRunsDo) {
  const TemporaryFolder folder;
  const Finished finished = run_program({"verify", small_run(folder), "--model.vocab_size", "50"});
  EXPECT_EQ(finished.exit_code, 65) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("is not below the vocabulary of 50"));
  EXPECT_EQ(lines_in(finished.error_output), 1) << finished.error_output;
}

TEST(Verify, RefusesWhatItCannotCompare) {
  EXPECT_EQ(run_program({"verify"}).exit_code, 2);
  EXPECT_EQ(run_program({"verify", "no-such.toml"}).exit_code, 2);
  EXPECT_EQ(run_program({"verify", "run.toml", "--workers", "1"}).exit_code, 2);
}

TEST(BenchKernels, GivesARateAndItsLimit) {
  const Finished finished = run_program({"bench", "kernels", "--kernel", "gemm,gelu", "--dtype", "bf16,fp32",
                                         "--turns", "5", "--turn-ms", "0.02", "--threads", "1", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  std::vector<std::string> seen;
  for (const nlohmann::json& figures : json_lines_of(finished)) {
    const std::string kernel = figures.at("kernel");
    seen.push_back(kernel + " " + figures.at("dtype").get<std::string>());
    EXPECT_GT(figures.at(kernel == "gemm" ? "gflops" : "gbps").get<double>(), 0.0);
    EXPECT_GT(figures.at("share_of_limit").get<double>(), 0.0);
    EXPECT_EQ(figures.at("threads"), 1);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"gemm bf16", "gemm fp32", "gelu bf16", "gelu fp32"}));
  const Finished unknown = run_program({"bench", "kernels", "--kernel", "gem"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error_output, HasSubstr("gemm"));
}

TEST(BenchKernels, RefusesTurnsTooFewForASpread) {
  const Finished finished = run_program({"bench", "kernels", "--kernel", "gelu", "--turns", "4"});
  expect_refusal(finished, 2, "--turns");
}

TEST(BenchKernels, CoversDividedLayersAndSplitWeights) {
  const Finished finished =
      run_program({"bench", "kernels", "--kernel",
                   "gemm_with_bias,sum_lanes,embedding_part,embedding_part_gradient,adamw_split,sgd_split",
                   "--dtype", "bf16", "--turns", "5", "--turn-ms", "0.02", "--threads", "1", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(json_lines_of(finished).size(), 6U);
}

// A model of 28 million parameters, nearly all in blocks.
TEST(BenchMemory, WhatIsSharedOutIsNotThere) {
  const Finished finished =
      run_program({"bench", "memory", "--preset", "llama-tiny", "--model.layers", "10", "--model.width",
                   "512", "--model.heads", "8", "--model.ffn_width", "1376", "--model.vocab_size", "256",
                   "--workers", "4", "--seq-len", "16", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  const std::vector<nlohmann::json> lines = json_lines_of(finished);
  ASSERT_EQ(lines.size(), 4U);
  for (int stage = 0; stage < 4; ++stage) {
    const nlohmann::json& line = lines[static_cast<std::size_t>(stage)];
    EXPECT_EQ(line.at("zero_stage"), stage);
    EXPECT_DOUBLE_EQ(line.at("state_mib").get<double>() + line.at("passing_mib").get<double>(),
                     line.at("predicted_mib").get<double>());
  }
  const auto saved = [&](const char* figure) {
    return lines[0].at(figure).get<double>() - lines[3].at(figure).get<double>();
  };
  EXPECT_GT(saved("formula_mib"), 300.0);
  EXPECT_GT(saved("measured_mib"), saved("formula_mib") / 2);
}

TEST(BenchMemory, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(run_program({"bench", "memory", "--preset", "llama-tiny", "--workers", "0"}).exit_code, 2);
  const Finished unknown = run_program({"bench", "memory", "--preset", "gpt9"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error_output, HasSubstr("gpt9"));
  EXPECT_EQ(lines_in(unknown.error_output), 1) << unknown.error_output;
}

TEST(BenchTrain, GivesAllFiguresAndTheRatios) {
  const Finished finished =
      run_program({"bench", "train", "--preset", "llama-tiny", "--model.layers", "1", "--model.vocab_size",
                   "64", "--workers", "2", "--seq-len", "16", "--steps", "3", "--turns", "1", "--against",
                   "one-process,inexact,unshared,elastic", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  const std::vector<nlohmann::json> lines = json_lines_of(finished);
  const std::vector<std::string> systems = {"lockstep", "one-process", "inexact", "unshared", "elastic"};
  ASSERT_EQ(lines.size(), 2 * systems.size() - 1);
  for (std::size_t i = 0; i < systems.size(); ++i) {
    EXPECT_EQ(lines[i].at("system"), systems[i]);
    for (const char* figure :
         {"tokens_per_s", "gflops", "gemm_peak_gflops", "mfu", "step_ms", "peak_rss_mib"}) {
      EXPECT_GT(lines[i].at(figure), 0.0) << figure;
    }
  }
  for (std::size_t i = 1; i < systems.size(); ++i) {
    const nlohmann::json& ratios = lines[systems.size() + i - 1];
    EXPECT_EQ(ratios.at("ratios"), "lockstep / " + systems[i]);
    EXPECT_GT(ratios.at("tokens_per_s"), 0.0);
  }
}

TEST(BenchTrain, KeysOfCheckpointsThatAreNotMadeAreLeftOut) {
  EXPECT_EQ(bench_train_lines({"--preset", "llama-tiny", "--model.layers", "1", "--model.vocab_size", "64",
                               "--checkpoint.keep_last", "3"})
                .size(),
            1U);
}

TEST(BenchTrain, OpponentsWithoutStagesHaveNoSchedule) {
  EXPECT_EQ(bench_train_lines({"--preset", "llama-tiny", "--model.layers", "2", "--model.vocab_size", "64",
                               "--training.global_batch_size", "4", "--parallelism.pipeline", "2",
                               "--parallelism.schedule", "interleaved", "--parallelism.virtual_stages", "2",
                               "--parallelism.part_blocks", "[1, 1, 1, 1]", "--against",
                               "data-parallel,two-workers,one-process"})
                .size(),
            7U);
}

TEST(BenchTrain, NeedsAStepAfterTheFirst) {
  for (const char* flag : {"--steps", "--training.steps"}) {
    const Finished finished = run_program({"bench", "train", "--preset", "llama-tiny", flag, "1"});
    EXPECT_EQ(finished.exit_code, 2) << finished.error_output;
    EXPECT_EQ(lines_in(finished.error_output), 1) << finished.error_output;
  }
}

TEST(BenchTrain, RefusesWhatPytorchCannotBeComparedWith) {
  const Finished finished = run_program({"bench", "train", "--dtype", "fp16", "--against", "pytorch"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.error_output, HasSubstr("--against pytorch"));
}

}  // namespace
}  // namespace lockstep::testing
