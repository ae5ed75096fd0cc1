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

#include "tests/cli/train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TrainHelp, IsAskedForInAnyPlaceAndWhole) {
  for (const char* command : {"train", "agent"}) {
    const Finished asked = run_program({command, "run.toml", "--workers", "2", "--help"});
    EXPECT_EQ(asked.output, run_program({"help", command}).output);
    EXPECT_THAT(asked.output, AllOf(HasSubstr("\n  -n, --workers N"), Not(HasSubstr("\n\n\n"))));
  }
}

TEST(TrainFlags, MayComeBeforeTheRunFile) {
  expect_refusal(run_program({"train", "--workers", "2", "no.toml"}), 2, "no.toml: cannot read the run file");
}

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

}  // namespace
}  // namespace lockstep::testing
