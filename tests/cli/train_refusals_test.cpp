// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep train` refuses, or warns of, before the first step: nothing is lost by a mistake.
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "lockstep/base/file_lock.h"

#include "tests/cli/memory_group.h"
#include "tests/cli/train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(TrainProgram, RanksThatDisagreeAreToldOnce) {
  const auto launched = [&](const std::string& flags_of_rank_1) {
    return run_shell("\"$LOCKSTEP\" launch -n 2 -- sh -c 'f=; test $RANK = 1 && f=\"" + flags_of_rank_1 +
                     "\"; exec \"$LOCKSTEP\" train " + run_ + " --job.dump_folder " + folder_.path("apart") +
                     " $f'");
  };
  const Finished other_seed = launched("--training.seed 7");
  EXPECT_EQ(other_seed.exit_code, 2);
  EXPECT_THAT(other_seed.error_output, HasSubstr("lockstep: rank 1 has another run than rank 0"));
  EXPECT_THAT(other_seed.error_output, Not(HasSubstr("another rank")));
  const Finished other_threads = launched("--training.threads 1");
  EXPECT_EQ(other_threads.exit_code, 0) << other_threads.error_output;
}

// oneDNN is told to do without the better instructions of this processor, an x86: it stands for another one.
constexpr const char* kOlderProcessor = "DNNL_MAX_CPU_ISA=SSE41";

TEST_F(TrainProgram, ProcessorsThatComputeOtherBitsAreRefused) {
  const auto launched = [&](const std::string& flags) {
    return run_shell(std::string("\"$LOCKSTEP\" launch -n 2 -- sh -c 'test $RANK = 1 && export ") +
                     kOlderProcessor + "; exec \"$LOCKSTEP\" train " + run_ + " --job.dump_folder " +
                     folder_.path("mixed") + " " + flags + "'");
  };
  const Finished mixed = launched("");
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.error_output,
              ContainsRegex("lockstep: rank 1 computes with .* for sse41 and rank 0 with .*, "
                            "which give other last bits: use processors of one kind"));
  EXPECT_EQ(launched("--comm.exact false").exit_code, 0);
}

TEST_F(TrainProgram, GoingOnWithAnotherProcessorIsTold) {
  const std::string where = folder_.path("moved");
  ASSERT_EQ(train({"--job.dump_folder", where, "--checkpoint.interval", "2"}).exit_code, 0);
  const auto resumed = [&](const std::string& environment, const std::string& steps) {
    return run_shell(environment + " \"$LOCKSTEP\" train " + run_ + " --job.dump_folder " + where +
                     " --resume auto --checkpoint.interval 2 --training.steps " + steps);
  };
  const Finished here = resumed("", "6");
  ASSERT_EQ(here.exit_code, 0) << here.error_output;
  EXPECT_THAT(here.output, Not(HasSubstr("was computed with")));
  const Finished elsewhere = resumed(kOlderProcessor, "8");
  ASSERT_EQ(elsewhere.exit_code, 0) << elsewhere.error_output;
  EXPECT_THAT(elsewhere.output,
              ContainsRegex("warning: .*/step-6 was computed with .*, and this host has .* for sse41"));
}

TEST_F(TrainProgram, BadDataOnOneRankIsTheCauseThatIsTold) {
  const std::string corrupt = folder_.write("corrupt.bin", std::string(200'000, '\xff'));
  for (const auto& [corpus, code] : std::map<std::string, int>{{"/nowhere", 2}, {corrupt, 65}}) {
    const Finished finished =
        run_shell("\"$LOCKSTEP\" launch -n 2 -- sh -c 'test $RANK = 1 && exec \"$LOCKSTEP\" train " + run_ +
                  " --data.train \"[\\\"" + corpus + "\\\"]\"; exec \"$LOCKSTEP\" train " + run_ +
                  " --job.dump_folder " + folder_.path("half") + "'");
    EXPECT_EQ(finished.exit_code, code) << finished.error_output;
    EXPECT_THAT(finished.error_output, HasSubstr(corpus));
  }
}

TEST_F(TrainProgram, ARunIsNotReplacedUnlessAsked) {
  const std::string where = folder_.path("once");
  ASSERT_EQ(train({"--job.dump_folder", where}).exit_code, 0);
  const Finished refused = train({"--job.dump_folder", where, "--workers", "2"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.error_output, "lockstep: " + where +
                                      " holds a run already: go on with it by --resume auto, choose another "
                                      "--job.dump_folder, or replace it with --job.overwrite true\n");
  EXPECT_EQ(steps_of("once").size(), 4U);
  ASSERT_EQ(train({"--job.dump_folder", where, "--job.overwrite", "true", "--training.steps", "2"}).exit_code,
            0);
  EXPECT_EQ(steps_of("once").size(), 2U);
  EXPECT_THAT(read_file(where + "/resolved.toml"), HasSubstr("overwrite = false"));
}

TEST_F(TrainProgram, ARunThatHasEndedIsNotReplacedForWantOfACheckpoint) {
  const std::string where = folder_.path("ended");
  ASSERT_EQ(train({"--job.dump_folder", where, "--checkpoint.enabled", "false"}).exit_code, 0);
  const std::string before = read_file(where + "/metrics.jsonl");
  for (const char* workers : {"1", "2"}) {
    const Finished refused = train({"--job.dump_folder", where, "--resume", "auto", "--workers", workers});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.error_output,
                HasSubstr("holds a run that has ended, and no checkpoint to go on from"));
  }
  EXPECT_EQ(read_file(where + "/metrics.jsonl"), before);
  // Lost before its first checkpoint, it would begin anew.
  std::filesystem::remove_all(where + "/model");
  EXPECT_EQ(train({"--job.dump_folder", where, "--resume", "auto"}).exit_code, 0);
}

TEST_F(TrainProgram, OneRunAtATimeWritesAFolder) {
  const std::string where = folder_.path("busy");
  std::filesystem::create_directory(where);
  const FileLock other(where + "/lock");
  const Finished refused = train({"--job.dump_folder", where, "--workers", "2"});
  EXPECT_EQ(refused.exit_code, 73);
  EXPECT_THAT(refused.error_output, StartsWith("lockstep: process " + std::to_string(::getpid()) + " on "));
  EXPECT_EQ(lines_in(refused.error_output), 1U) << refused.error_output;
}

TEST_F(TrainProgram, AMistakeDoesNotTouchTheRunThatIsToBeOverwritten) {
  const std::string where = folder_.path("kept");
  ASSERT_EQ(train({"--job.dump_folder", where}).exit_code, 0);
  const std::string before = read_file(where + "/metrics.jsonl");
  for (const char* key : {"--data.train", "--data.validation"}) {
    const Finished finished =
        train({"--job.dump_folder", where, "--job.overwrite", "true", key, "[\"nowhere\"]"});
    EXPECT_EQ(finished.exit_code, 2) << finished.error_output;
    EXPECT_EQ(read_file(where + "/metrics.jsonl"), before) << key;
  }
}

TEST_F(TrainProgram, ARefusedRunLeavesNoFolder) {
  for (const char* workers : {"1", "2"}) {
    for (const char* elastic : {"true", "false"}) {
      const Finished refused = train({"--job.dump_folder", folder_.path("refused/run"), "--workers", workers,
                                      "--elastic.enabled", elastic, "--data.train", "[\"nowhere\"]"});
      EXPECT_EQ(refused.exit_code, 2) << refused.error_output;
      EXPECT_FALSE(std::filesystem::exists(folder_.path("refused"))) << workers << elastic;
    }
  }
  // What was there before stays.
  std::filesystem::create_directory(folder_.path("refused"));
  EXPECT_EQ(train({"--job.dump_folder", folder_.path("refused"), "--data.train", "[\"nowhere\"]"}).exit_code,
            2);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("refused")));
}

TEST_F(TrainProgram, MistakesGetOneSentence) {
  const auto sentence = [&](std::vector<std::string> flags, int code) {
    if (!std::ranges::count(flags, "--job.dump_folder")) {
      flags.insert(flags.end(), {"--job.dump_folder", folder_.path("refused")});
    }
    const Finished finished = train(flags);
    EXPECT_EQ(finished.exit_code, code) << finished.error_output;
    EXPECT_THAT(finished.error_output, StartsWith("lockstep: "));
    EXPECT_EQ(lines_in(finished.error_output), 1) << finished.error_output;
    return finished.error_output;
  };
  EXPECT_THAT(sentence({"--training.stepz", "3"}, 2), HasSubstr("did you mean 'training.steps'"));
  EXPECT_THAT(sentence({"--workres", "2"}, 2), HasSubstr("did you mean '--workers'?"));
  EXPECT_THAT(sentence({"--workers", "none"}, 2), HasSubstr("--workers is 'none'"));
  EXPECT_THAT(sentence({"--job.dump_folder", folder_.path("refused"), "--workers"}, 2),
              HasSubstr("--workers needs a value"));
  EXPECT_THAT(sentence({"--training.global_batch_size", "17"}, 2), HasSubstr("nearest that work"));
  EXPECT_THAT(sentence({"--data.train", "[\"nowhere\"]"}, 2), HasSubstr("nowhere"));
  EXPECT_THAT(sentence({"--model.vocab_size", "40"}, 2),
              HasSubstr("has 257 tokens, but model.vocab_size is 40"));
  EXPECT_THAT(sentence({"--job.dump_folder", "/proc/nowhere"}, 2), HasSubstr("/proc/nowhere"));
  EXPECT_THAT(sentence({"--data.train", "[\"nowhere\"]", "--workers", "2"}, 2), HasSubstr("nowhere"));
  EXPECT_THAT(sentence({"--data.validation", "[\"nowhere\"]", "--workers", "2"}, 2), HasSubstr("nowhere"));
  EXPECT_THAT(sentence({"--parallelism.lanes", "1", "--workers", "2"}, 2),
              StartsWith("lockstep: flag --parallelism.lanes: parallelism.lanes = 1 leaves"));
  EXPECT_EQ(sentence({"--parallelism.data", "1", "--workers", "2"}, 2),
            "lockstep: flag --parallelism.data: a mesh of pipeline 1 x data 1 x tensor 1 does not have 2 "
            "workers; start 1 worker, or set data to 2, or set tensor to 2\n");
  EXPECT_EQ(sentence({"--parallelism.lane_weights", "1,2"}, 2),
            "lockstep: flag --parallelism.lane_weights: parallelism.lane_weights has 2 numbers for 1 "
            "data-parallel worker; give 1, or none for equal shares, or start 2 workers\n");
  EXPECT_THAT(sentence({"--parallelism.tensor_lanes", "3"}, 2),
              StartsWith("lockstep: flag --parallelism.tensor_lanes: parallelism.tensor_lanes = 3 must be"));
  EXPECT_THAT(sentence({"--training.threads", "4096", "--workers", "2"}, 2),
              HasSubstr("training.threads = 4096"));
  EXPECT_THAT(sentence({"--model.vocab_size", "40", "--workers", "2"}, 2), HasSubstr("has 257 tokens"));
  EXPECT_THAT(sentence({"--comm.all_reduce", "halving_doubling", "--workers", "3"}, 2),
              HasSubstr("halving_doubling"));
  EXPECT_THAT(sentence({"--resume", "runs/a", "--init-from", "runs/b"}, 2),
              HasSubstr("leave one of the two out"));
  EXPECT_THAT(sentence({"--parallelism.schedule", "zbv", "--workers", "2"}, 2),
              HasSubstr("has no effect with parallelism.pipeline = 1"));
  EXPECT_EQ(run_program({"train"}).error_output,
            "lockstep: no run file: write it first, as in `lockstep train run.toml --workers 2`\n");
}

TEST_F(TrainProgram, TooLittleMemoryIsToldBeforeTheFirstStep) {
  const auto train_within = [&](long bytes, const std::string& run) {
    const MemoryGroup group(bytes);
    return run_shell("echo $$ > " + group.processes() + " && exec \"$LOCKSTEP\" train " + run_ +
                     " --training.threads 1 --job.dump_folder " + folder_.path(run));
  };
  const Finished roomy = train_within(long{1} << 40, "roomy");
  ASSERT_EQ(roomy.exit_code, 0) << roomy.error_output;
  EXPECT_THAT(roomy.output, Not(HasSubstr("warning")));
  std::istringstream metrics(read_file(folder_.path("roomy") + "/metrics.jsonl"));
  std::string step;
  std::getline(metrics, step);
  const auto needed_mib = nlohmann::json::parse(step).at("predicted_memory_mib").get<double>();

  // What it needs is there, but part of that is taken when the run begins.
  const Finished tight = train_within(static_cast<long>(needed_mib * (1 << 20)), "tight");
  EXPECT_EQ(tight.exit_code, 0) << tight.error_output;
  EXPECT_THAT(tight.output,
              ContainsRegex("warning: 1 worker on this host will need about [0-9.]+ MiB of memory, of which "
                            "[0-9.]+ MiB can be had: use fewer of them, a smaller training.micro_batch_size, "
                            "or --parallelism.recompute all\n(.*\n)*step 1/4 "));

  const Finished hopeless = train_within(static_cast<long>(needed_mib * (1 << 20) / 2), "hopeless");
  EXPECT_EQ(hopeless.exit_code, 2) << hopeless.output;
  EXPECT_THAT(hopeless.error_output,
              ContainsRegex("lockstep: 1 worker on this host would need about [0-9.]+ MiB of memory, but all "
                            "there is are [0-9.]+ MiB: choose a smaller model"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("hopeless") + "/metrics.jsonl"));
}

}  // namespace
}  // namespace lockstep::testing
