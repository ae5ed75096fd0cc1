// SPDX-License-Identifier: Apache-2.0
//
// `lockstep prepare` and `lockstep train` as users call them, on a text small enough for a test.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
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

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(TrainProgram, TheBitsDoNotDependOnTheNumberOfWorkers) {
  for (const char* dtype : {"fp32", "bf16", "fp16"}) {
    std::vector<nlohmann::json> alone;
    for (const char* workers : {"1", "2", "3"}) {
      const std::string run = std::string(dtype) + workers;
      const Finished finished =
          train({"--workers", workers, "--training.dtype", dtype, "--job.dump_folder", folder_.path(run)});
      ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
      EXPECT_THAT(finished.output, HasSubstr("done after 4 of 4 steps"));
      const std::vector<nlohmann::json> steps = steps_of(run);
      ASSERT_EQ(steps.size(), 4U);
      EXPECT_TRUE(steps[1].contains("validation/loss"));
      if (alone.empty()) alone = steps;
      EXPECT_EQ(steps, alone) << workers << " workers in " << dtype;
    }
  }
}

// Large enough for two chunks, whose weights come and go one after the other, also when the run validates.
TEST_F(TrainProgram, WeightsThatAreSharedOutAreSavedValidatedAndLoaded) {
  const auto model_of = [&](const std::string& run) {
    return read_file(folder_.path(run) + "/model/model.safetensors");
  };
  for (const std::string tied : {"true", "false"}) {
    const auto expect_done = [&](const std::string& run, std::vector<std::string> flags) {
      flags.insert(flags.end(), {"--model.tied_embeddings",
                                 tied,
                                 "--model.layers",
                                 "4",
                                 "--model.width",
                                 "512",
                                 "--model.ffn_width",
                                 "1024",
                                 "--training.steps",
                                 "2",
                                 "--training.dtype",
                                 "bf16",
                                 "--validation.freq",
                                 "1",
                                 "--training.global_batch_size",
                                 "4",
                                 "--training.micro_batch_size",
                                 "1",
                                 "--training.seq_len",
                                 "16",
                                 "--job.dump_folder",
                                 folder_.path(run)});
      const Finished finished = train(flags);
      ASSERT_EQ(finished.exit_code, 0) << run << ": " << finished.error_output;
    };
    expect_done("alone" + tied, {});
    expect_done("shared" + tied, {"--workers", "2", "--parallelism.zero_stage", "3"});
    EXPECT_EQ(steps_of("shared" + tied), steps_of("alone" + tied));
    EXPECT_TRUE(model_of("shared" + tied) == model_of("alone" + tied)) << "other weights are written";
    if (tied == "false") continue;

    const std::string first = folder_.path("alone" + tied) + "/model";
    expect_done("alone, on" + tied, {"--checkpoint.initial_load_path", first});
    expect_done("shared, on" + tied,
                {"--checkpoint.initial_load_path", first, "--workers", "2", "--parallelism.zero_stage", "3"});
    EXPECT_EQ(steps_of("shared, on" + tied), steps_of("alone, on" + tied));
    EXPECT_TRUE(model_of("shared, on" + tied) == model_of("alone, on" + tied));
    EXPECT_FALSE(model_of("alone, on" + tied) == model_of("alone" + tied));
  }
}

TEST_F(TrainProgram, TheLogHasWhatTheRunSaid) {
  const Finished finished =
      train({"--workers", "2", "--metrics.log_freq", "3", "--job.dump_folder", folder_.path("logged")});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_THAT(finished.output, AllOf(HasSubstr("2 workers, 4 lanes"), HasSubstr("step 3/4  loss"),
                                     HasSubstr("validation loss"), HasSubstr("done after 4")));
  EXPECT_EQ(read_file(folder_.path("logged") + "/log.txt"), finished.output);
}

TEST_F(TrainProgram, EveryStepTellsWhereItsTimeWent) {
  for (const std::string workers : {"1", "2"}) {
    ASSERT_EQ(train({"--workers", workers, "--job.dump_folder", folder_.path(workers)}).exit_code, 0);
    std::istringstream lines(read_file(folder_.path(workers) + "/metrics.jsonl"));
    int steps = 0;
    for (std::string line; std::getline(lines, line); ++steps) {
      const auto step = nlohmann::json::parse(line);
      double together = 0;
      for (const char* phase : {"data", "forward", "backward", "update", "other", "communication"})
        together += step.at(std::string("phase/") + phase + "_s").get<double>();
      EXPECT_GT(step.at("phase/forward_s"), 0);
      EXPECT_GT(step.at("phase/backward_s"), 0);
      EXPECT_GE(together, step.at("step_s").get<double>() * 0.999);
    }
    EXPECT_EQ(steps, 4);
  }
}

TEST_F(TrainProgram, TheResolvedRunGivesTheSameRun) {
  ASSERT_EQ(train({"--workers", "2", "--job.dump_folder", folder_.path("a")}).exit_code, 0);
  const Finished again =
      run_program({"train", folder_.path("a") + "/resolved.toml", "--job.dump_folder", folder_.path("b")});
  ASSERT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_EQ(steps_of("b"), steps_of("a"));
}

TEST_F(TrainProgram, RanksMayComeFromALauncher) {
  const Finished finished = run_shell("\"$LOCKSTEP\" launch -n 2 -- \"$LOCKSTEP\" train " + run_ +
                                      " --job.dump_folder " + folder_.path("launched"));
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(steps_of("launched").size(), 4U);
}

TEST_F(TrainProgram, EveryRankTracesItsActionsOnOneTimeLine) {
  ASSERT_EQ(train({"--workers", "2", "--metrics.enable_trace", "true", "--validation.freq", "0",
                   "--job.dump_folder", folder_.path("traced")})
                .exit_code,
            0);
  std::map<int, std::map<std::string, int>> of_rank;
  for (const nlohmann::json& event : trace_of("traced")) {
    if (event.at("ph") != "X" || event.at("cat") == "pass") continue;
    EXPECT_GE(event.at("ts").get<double>(), 0.0);
    const std::string name = event.at("name");
    ++of_rank[event.at("pid")][name.substr(0, name.find(' '))];
  }
  EXPECT_EQ(of_rank.size(), 2U);
  for (auto& [rank, seen] : of_rank) {
    const int blocks = 4;  // the embedding, two layers, the last norm
    EXPECT_EQ(seen["forward"], 4 * 2 * 2 * blocks) << "steps, lanes, micro-batches, blocks";
    EXPECT_EQ(seen["backward"], seen["forward"]);
    EXPECT_EQ(seen["clip"], 4);
    EXPECT_EQ(seen["update"], seen["reduce"]);
    EXPECT_EQ(seen["gather"], seen["reduce"]);
  }
}

TEST_F(TrainProgram, GradientsThatAreNotFiniteAreNamedAndEndTheRun) {
  const Finished finished =
      train({"--workers", "2", "--training.dtype", "fp16", "--training.initial_loss_scale", "1e9",
             "--training.min_loss_scale", "1e9", "--training.max_bad_steps", "2", "--training.steps", "20",
             "--job.dump_folder", folder_.path("bad")});
  EXPECT_EQ(finished.exit_code, 2) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("skipped: the gradient of "));
  EXPECT_THAT(finished.error_output,
              HasSubstr("of 2 steps in a row were not finite, this time first that of"));
}

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

TEST_F(TrainProgram, ACorpusThatIsCutMeanwhileIsBadData) {
  Program program({"train", run_, "--training.steps", "1000000", "--validation.freq", "0",
                   "--job.dump_folder", folder_.path("cut")});
  wait_for_a_step("cut");
  std::filesystem::resize_file(folder_.path("corpus.bin"), 10);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 65) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("corpus.bin at byte 10: the file ends here"));
}

// As of those behind the first 2^28 of a file, which are not read before the run begins.
TEST_F(TrainProgram, ATokenThatIsFoundBadMeanwhileIsBadData) {
  Program program({"train", run_, "--workers", "2", "--training.steps", "1000000", "--validation.freq", "0",
                   "--job.dump_folder", folder_.path("late")});
  wait_for_a_step("late");
  const std::string corpus = folder_.path("corpus.bin");
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(corpus) / 4 * 2);
  std::fstream(corpus, std::ios::binary | std::ios::in | std::ios::out).seekp(middle).write("\xff\xff", 2);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 65) << finished.error_output;
  EXPECT_THAT(finished.error_output,
              HasSubstr(corpus + " at byte " + std::to_string(middle) + ": token 65535 is not below"));
}

TEST_F(TrainProgram, AFrozenWorkerIsNamedAtTheDeadline) {
  Program program({"train", run_, "--workers", "2", "--training.steps", "1000000",
                   "--comm.train_timeout_seconds", "2", "--elastic.enabled", "false", "--job.dump_folder",
                   folder_.path("frozen")});
  wait_for_a_step("frozen");
  const std::string workers = "pgrep -f '[l]ockstep-trainer train.*" + folder_.path("frozen") + "'";
  EXPECT_EQ(run_shell("kill -STOP $(" + workers + " | tail -n 1)").exit_code, 0);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("rank 1"));
  EXPECT_EQ(run_shell(workers).output, "");
}

TEST_F(TrainProgram, AKilledWorkerEndsARunThatMayNotGoOn) {
  Program program({"train", run_, "--workers", "3", "--training.steps", "1000000", "--elastic.enabled",
                   "false", "--job.dump_folder", folder_.path("killed")});
  wait_for_a_step("killed");
  const std::string workers = "pgrep -f '[l]ockstep-trainer train.*" + folder_.path("killed") + "'";
  EXPECT_EQ(run_shell("kill -9 $(" + workers + " | tail -n 1)").exit_code, 0);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 137) << finished.error_output;
  EXPECT_THAT(finished.error_output, HasSubstr("was killed by signal 9"));
  EXPECT_EQ(run_shell(workers).output, "");
}

TEST_F(TrainProgram, ASignalThatComesTwiceAtOnceIsOneWish) {
  Program program({"train", run_, "--workers", "2", "--training.steps", "1000000", "--job.dump_folder",
                   folder_.path("twice")});
  wait_for_a_step("twice");
  program.signal(SIGTERM);
  program.signal(SIGTERM);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_TRUE(std::filesystem::exists(folder_.path("twice") + "/model/config.json"));
}

TEST_F(TrainProgram, ASignalEndsAllRanksAfterTheSameStep) {
  Program program({"train", run_, "--workers", "2", "--training.steps", "1000000", "--job.dump_folder",
                   folder_.path("stopped")});
  wait_for_a_step("stopped");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.signal(SIGINT);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 75) << finished.error_output;
  EXPECT_THAT(finished.output, HasSubstr("stopped after"));
  EXPECT_THAT(finished.output, HasSubstr("; the same command with --resume auto goes on"));
  EXPECT_EQ(finished.error_output, "");
  const auto last =
      "stopped after " + std::to_string(steps_of("stopped").back().at("step").get<int>()) + " of";
  EXPECT_THAT(finished.output, HasSubstr(last));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("stopped") + "/model/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("stopped") + "/lock"));
}

TEST_F(TrainProgram, WithoutCheckpointsASignalEndsARunForGood) {
  Program program({"train", run_, "--workers", "2", "--training.steps", "1000000", "--checkpoint.enabled",
                   "false", "--job.dump_folder", folder_.path("ended")});
  wait_for_a_step("ended");
  program.signal(SIGTERM);
  const Finished finished = program.finish();
  EXPECT_EQ(finished.exit_code, 143) << finished.error_output;
  EXPECT_THAT(finished.output, Not(HasSubstr("--resume")));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("ended") + "/model/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("ended") + "/checkpoints"));
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

// What a step needs is kept for the next one: a process that gives its memory back and takes it again would
// fault each of its pages in anew in every step.
TEST_F(TrainProgram, AStepFindsTheMemoryOfTheLastOne) {
  const Finished finished =
      train({"--job.dump_folder", folder_.path("steady"), "--model.width", "128", "--training.seq_len", "256",
             "--training.steps", "8", "--validation.freq", "0"});
  ASSERT_EQ(finished.exit_code, 0) << finished.error_output;
  std::istringstream lines(read_file(folder_.path("steady") + "/metrics.jsonl"));
  std::vector<double> faults;  // by step
  for (std::string line; std::getline(lines, line);) {
    faults.push_back(nlohmann::json::parse(line)["page_faults"]);
  }
  ASSERT_EQ(faults.size(), 8U);
  // Another thread may still fetch a page or two.
  EXPECT_LT(std::accumulate(faults.begin() + 4, faults.end(), 0.0), faults.front() / 10);
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
  EXPECT_THAT(sentence({"--parallelism.lanes", "1", "--workers", "2"}, 2), HasSubstr("parallelism.lanes"));
  EXPECT_THAT(sentence({"--parallelism.data", "3", "--workers", "2"}, 2), HasSubstr("set data to 2"));
  EXPECT_THAT(sentence({"--parallelism.lane_weights", "[1,2,3]", "--workers", "2"}, 2),
              HasSubstr("lane_weights"));
  EXPECT_THAT(sentence({"--training.threads", "4096", "--workers", "2"}, 2),
              HasSubstr("training.threads = 4096"));
  EXPECT_THAT(sentence({"--model.vocab_size", "40", "--workers", "2"}, 2), HasSubstr("has 257 tokens"));
  EXPECT_THAT(sentence({"--comm.all_reduce", "halving_doubling", "--workers", "3"}, 2),
              HasSubstr("halving_doubling"));
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
