// SPDX-License-Identifier: Apache-2.0
//
// Runs that end early and go on, as users do it.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stop_token>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/train_program.h"
#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Flags = std::vector<std::string>;

// Trains enough steps to be interrupted in.
class ResumedProgram : public TrainProgram {
 protected:
  Flags flags_of(const std::string& run, const Flags& more) const {
    Flags flags = {"--training.steps",       "100", "--validation.freq",     "0",
                   "--metrics.log_freq",     "100", "--checkpoint.interval", "10",
                   "--checkpoint.keep_last", "3",   "--job.dump_folder",     folder_.path(run)};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  std::string newest_of(const std::string& run) const {
    return read_file(folder_.path(run) + "/checkpoints/latest");
  }

  // The step of the oldest checkpoint.
  std::int64_t oldest_of(const std::string& run) const {
    std::int64_t oldest = 100;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path(run) + "/checkpoints")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("step-")) oldest = std::min<std::int64_t>(oldest, std::stoll(name.substr(5)));
    }
    return oldest;
  }

  // Of checkpoints, and of what is to be one.
  std::size_t folders_of(const std::string& run) const {
    std::size_t folders = 0;
    std::error_code none_yet;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path(run) + "/checkpoints", none_yet)) {
      folders += entry.path().filename().string().starts_with("step-") ? 1 : 0;
    }
    return folders;
  }

  Finished train_to_the_end(const std::string& run, const Flags& more) { return train(flags_of(run, more)); }

  Finished interrupted(const std::string& run, const Flags& more, int signal) {
    Flags arguments = {"train", run_};
    const Flags flags = flags_of(run, more);
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Program program(arguments);
    for (int i = 0; i < 600 && newest_of(run).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    program.signal(signal);
    return program.finish();
  }

  // As a run that nobody has interrupted: each step once, with the same numbers.
  void expect_whole(const std::string& run) {
    expect_same_steps(run, "whole");
    EXPECT_EQ(hash_of(run), hash_of("whole"));
    EXPECT_TRUE(read_file(folder_.path(run) + "/model/model.safetensors") ==
                read_file(folder_.path("whole") + "/model/model.safetensors"));
  }
};

// A reader that goes away ends the run, and nothing that was trained is lost.
TEST_F(ResumedProgram, ARunThatNobodyListensToSavesItsLastStep) {
  for (const std::string workers : {"1", "2"}) {
    const std::string run = "heard" + workers;
    const Finished finished = run_shell(
        fmt::format("{{ \"$LOCKSTEP\" train {} {} --metrics.log_freq 3; echo $? > {}; }} | head -n 1", run_,
                    fmt::join(flags_of(run, {"--workers", workers, "--checkpoint.interval", "1000"}), " "),
                    folder_.path("code" + workers)));
    EXPECT_EQ(read_file(folder_.path("code" + workers)), "74\n");
    EXPECT_THAT(finished.error_output, HasSubstr("cannot write standard output: Broken pipe"));
    const std::string metrics = read_file(folder_.path(run) + "/metrics.jsonl");
    const auto steps = std::count(metrics.begin(), metrics.end(), '\n');
    EXPECT_EQ(newest_of(run), fmt::format("step-{}\n", steps)) << finished.error_output;
  }
}

TEST_F(ResumedProgram, ASignalAndAnotherLayoutLeaveNoTrace) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const Flags before[] = {
      {"--workers", "2"}, {}, {"--workers", "4", "--parallelism.zero_stage", "3"}, {"--workers", "2"}};
  const Flags after[] = {{"--workers", "3", "--parallelism.zero_stage", "3"},
                         {"--workers", "2", "--parallelism.pipeline", "2"},
                         {},
                         {"--workers", "2"}};
  const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
  for (int i = 0; i < 4; ++i) {
    const std::string run = "stopped" + std::to_string(i);
    const Finished stopped = interrupted(run, before[i], signals[i]);
    EXPECT_EQ(stopped.exit_code, 75) << stopped.output << stopped.error_output;
    EXPECT_THAT(stopped.output, HasSubstr("; the same command with --resume auto goes on"));
    Flags on = after[i];
    on.insert(on.end(), {"--resume", "auto"});
    const Finished ended = train_to_the_end(run, on);
    ASSERT_EQ(ended.exit_code, 0) << ended.error_output;
    EXPECT_THAT(ended.output, HasSubstr("resumed " + folder_.path(run) + "/checkpoints/step-"));
    EXPECT_THAT(ended.output, HasSubstr("done after 100 of 100 steps"));
    expect_whole(run);
    EXPECT_FALSE(std::filesystem::exists(folder_.path(run) + "/lock"));
  }
}

// The disk is still at one checkpoint when steps have passed, and at the removal of old ones after it.
TEST_F(ResumedProgram, EveryCheckpointOfASlowDiskIsGood) {
  Flags arguments = flags_of("slow", {"--checkpoint.interval", "1", "--workers", "2"});
  arguments.insert(arguments.begin(), {"train", run_});
  const Finished ended = run_program(
      arguments,
      {{"LOCKSTEP_FAILPOINTS", "checkpoint.shard.begun:sleep(100);checkpoint.collect.begun:sleep(50)"}});
  ASSERT_EQ(ended.exit_code, 0) << ended.error_output;
  for (const nlohmann::json& step : steps_of("slow")) {
    EXPECT_FALSE(step.contains("checkpoint/failed")) << step;
  }
  EXPECT_THAT(ended.output, ContainsRegex("wrote .*/step-[0-9]+ in (.|\n)*wrote .*/step-[0-9]+ in "));
}

// A disk with room for one more than is kept is enough.
TEST_F(ResumedProgram, TheNextIsNotBegunBeforeOldOnesAreGone) {
  Flags arguments =
      flags_of("slow", {"--checkpoint.interval", "1", "--checkpoint.keep_last", "1", "--workers", "2"});
  arguments.insert(arguments.begin(), {"train", run_});
  std::size_t most = 0;
  std::jthread watch([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      most = std::max(most, folders_of("slow"));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  const Finished ended =
      run_program(arguments, {{"LOCKSTEP_FAILPOINTS", "checkpoint.collect.begun:sleep(200)"}});
  watch.request_stop();
  watch.join();
  EXPECT_EQ(ended.exit_code, 0) << ended.error_output;
  EXPECT_EQ(most, 2U);
  EXPECT_EQ(oldest_of("slow"), 100) << "at the end they are gone";
}

TEST_F(ResumedProgram, SoDoesAKill) {
  ASSERT_EQ(train_to_the_end("whole", {"--workers", "2"}).exit_code, 0);
  EXPECT_EQ(interrupted("killed", {"--workers", "2"}, SIGKILL).exit_code, 137);
  ASSERT_EQ(train_to_the_end("killed", {"--resume=auto"}).exit_code, 0);
  expect_whole("killed");
}

TEST_F(ResumedProgram, ARunThatIsFurtherThanAskedForSaysSo) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const std::string before = hash_of("whole");
  const Finished ended = train_to_the_end("whole", {"--resume", "auto", "--training.steps", "30"});
  EXPECT_EQ(ended.exit_code, 0) << ended.error_output;
  EXPECT_THAT(ended.output, HasSubstr("done after 100 steps, which is more than training.steps = 30, loss"));
  EXPECT_EQ(hash_of("whole"), before);
}

TEST_F(ResumedProgram, ARunIsResumedIntoAnotherFolder) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const std::int64_t oldest = oldest_of("whole");
  ASSERT_LT(oldest, 100);
  const std::string from = folder_.path("whole") + "/checkpoints/step-" + std::to_string(oldest);
  const Finished ended = train_to_the_end("copy", {"--resume", from, "--workers", "2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.error_output;
  EXPECT_EQ(steps_of("copy").front().at("step"), oldest + 1);
  EXPECT_EQ(steps_of("copy").back().at("step"), 100);
  EXPECT_EQ(hash_of("copy"), hash_of("whole"));
  const Finished taken = train_to_the_end("copy", {"--resume", from});
  EXPECT_EQ(taken.exit_code, 2);
  EXPECT_THAT(taken.error_output, HasSubstr("holds a run already"));
}

TEST_F(ResumedProgram, WhatCannotBeResumedIsSaidInASentence) {
  const Finished nothing = train_to_the_end("none", {"--resume", folder_.path("nowhere")});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.error_output, StartsWith("lockstep: " + folder_.path("nowhere")));
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  for (const char* workers : {"1", "2"}) {
    const Finished other =
        train_to_the_end("whole", {"--resume", "auto", "--workers", workers, "--training.seed", "9"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.error_output, HasSubstr("training.seed is 9, but "));
    EXPECT_EQ(std::count(other.error_output.begin(), other.error_output.end(), '\n'), 1);
  }
  EXPECT_EQ(steps_of("whole").size(), 100U) << "nothing was touched";
}

TEST_F(ResumedProgram, WhatCannotBeResumedLeavesNoFolder) {
  ASSERT_EQ(train_to_the_end("whole", {"--training.threads", "1"}).exit_code, 0);
  const std::string copy = folder_.path("copy");
  std::filesystem::copy(folder_.path("whole"), copy, std::filesystem::copy_options::recursive);
  folder_.write("copy/checkpoints/step-100/manifest.json", "{");
  const auto expect_refusal = [&](const Flags& more, int code, const std::string& sentence) {
    for (const Flags& workers :
         {Flags{}, Flags{"--workers", "2"}, Flags{"--workers", "2", "--elastic.enabled", "false"}}) {
      Flags flags = workers;
      flags.insert(flags.end(), more.begin(), more.end());
      const Finished refused = train_to_the_end("refused", flags);
      EXPECT_EQ(refused.exit_code, code) << refused.output;
      EXPECT_THAT(refused.error_output, HasSubstr(sentence));
      EXPECT_FALSE(std::filesystem::exists(folder_.path("refused"))) << refused.error_output;
    }
  };
  expect_refusal({"--resume", folder_.path("whole"), "--training.seed", "9"}, 2, "training.seed is 9, but ");
  expect_refusal({"--resume", copy + "/checkpoints/step-100"}, 65, "manifest.json");
}

// As on hosts where one path has two contents.
TEST_F(ResumedProgram, RanksThatFindDifferentCheckpointsAreTold) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const std::string checkpoints = folder_.path("whole") + "/checkpoints";
  const std::int64_t oldest = oldest_of("whole");
  ASSERT_LT(oldest, 100);
  std::filesystem::create_directories(folder_.path("host0"));
  std::filesystem::create_directories(folder_.path("host1"));
  constexpr auto kAll = std::filesystem::copy_options::recursive;
  std::filesystem::copy(checkpoints + "/step-100", folder_.path("host0") + "/weights", kAll);
  std::filesystem::copy(fmt::format("{}/step-{}", checkpoints, oldest), folder_.path("host1") + "/weights",
                        kAll);
  const auto launched = [&](const std::string& key) {
    return run_shell("\"$LOCKSTEP\" launch -n 2 -- sh -c 'cd " + folder_.path("host") +
                     "$RANK; exec \"$LOCKSTEP\" train " + run_ + " " + key + " weights " +
                     fmt::format("{}", fmt::join(flags_of("apart", {}), " ")) + "'");
  };
  const Finished resumed = launched("--resume");
  EXPECT_EQ(resumed.exit_code, 2) << resumed.output << resumed.error_output;
  EXPECT_THAT(
      resumed.error_output,
      ContainsRegex(fmt::format("lockstep: rank 1 finds step {} with manifest [0-9a-f]+ to go on from, "
                                "but rank 0 step 100 with manifest [0-9a-f]+: it must be one",
                                oldest)));
  const Finished begun = launched("--init-from");
  EXPECT_EQ(begun.exit_code, 2) << begun.output << begun.error_output;
  EXPECT_THAT(begun.error_output,
              HasSubstr("lockstep: rank 1 reads other weights than rank 0: weights must"));
  EXPECT_THAT(steps_of("apart"), ::testing::IsEmpty());

  std::filesystem::remove_all(folder_.path("host1") + "/weights");
  std::filesystem::copy(folder_.path("host0") + "/weights", folder_.path("host1") + "/weights", kAll);
  const Finished same = launched("--resume");
  EXPECT_EQ(same.exit_code, 0) << same.error_output;
}

// What comes after the newer ones would be lost among them.
TEST_F(ResumedProgram, ARunDoesNotGoBackInItsOwnFolder) {
  ASSERT_EQ(train_to_the_end("whole", {"--training.threads", "1"}).exit_code, 0);
  const std::string hash = hash_of("whole");
  const std::string checkpoints = folder_.path("whole") + "/checkpoints";
  const std::string old = checkpoints + "/step-" + std::to_string(oldest_of("whole"));
  const std::vector<std::string> before = test::names_in(checkpoints);
  for (const Flags& flags : {Flags{"--resume", old}, Flags{"--resume", old, "--workers", "2"},
                             Flags{"--resume", old + "/", "--job.overwrite", "true"}}) {
    const Finished refused = train_to_the_end("whole", flags);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.error_output, HasSubstr("choose another --job.dump_folder, or remove the newer"));
    EXPECT_EQ(std::count(refused.error_output.begin(), refused.error_output.end(), '\n'), 1);
  }
  EXPECT_EQ(steps_of("whole").size(), 100U) << "nothing was touched";
  EXPECT_EQ(test::names_in(checkpoints), before);

  for (const std::string& name : before) {
    const std::string path = checkpoints + "/" + name;
    if (name.starts_with("step-") && path != old) std::filesystem::remove_all(path);
  }
  const Finished again =
      train_to_the_end("whole", {"--resume", old + "/", "--workers", "2", "--training.threads", "1"});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_EQ(steps_of("whole").size(), 100U);
  EXPECT_EQ(hash_of("whole"), hash);
}

TEST_F(ResumedProgram, WhatARunBeginsWithIsNotRemovedForIt) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const std::string run = folder_.path("whole");
  const std::string checkpoints = run + "/checkpoints";
  const std::string newest = checkpoints + "/step-100";
  std::filesystem::create_directory_symlink(run, folder_.path("link"));
  const std::vector<std::string> before = test::names_in(checkpoints);
  const auto begin = [&](const std::string& path, const Flags& more) {
    Flags flags = {"--init-from", path, "--job.overwrite", "true", "--training.steps", "3"};
    flags.insert(flags.end(), more.begin(), more.end());
    return train_to_the_end("whole", flags);
  };
  for (const std::string& path : {run, checkpoints, newest, newest + "/", folder_.path("link"),
                                  folder_.path("link") + "/../link/checkpoints/step-100"}) {
    for (const Flags& flags :
         {Flags{}, Flags{"--workers", "2"}, Flags{"--workers", "2", "--elastic.enabled", "false"}}) {
      const Finished refused = begin(path, flags);
      EXPECT_EQ(refused.exit_code, 2) << path << refused.output;
      EXPECT_THAT(refused.error_output,
                  HasSubstr("choose another --job.dump_folder, or --init-from the folder"));
      EXPECT_EQ(lines_in(refused.error_output), 1U) << refused.error_output;
    }
  }
  EXPECT_EQ(test::names_in(checkpoints), before);
  EXPECT_EQ(steps_of("whole").size(), 100U) << "nothing was touched";

  // A run that goes on begins with nothing, and its model stays until there is another.
  EXPECT_EQ(train_to_the_end("whole", {"--resume", "auto", "--init-from", run}).exit_code, 0);
  const Finished again = begin(run + "/model", {"--workers", "2"});
  EXPECT_EQ(again.exit_code, 0) << again.error_output;
  EXPECT_EQ(steps_of("whole").size(), 3U);
}

// Its file names the weights, but what goes on needs none.
TEST_F(ResumedProgram, ARunThatBeganWithWeightsGoesOnElsewhere) {
  const auto train_file = [&](const std::string& file, const std::string& run, const Flags& more) {
    Flags flags = {"train", file, "--validation.freq", "0", "--job.dump_folder", folder_.path(run)};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_program(flags);
  };
  ASSERT_EQ(train_file(run_, "first", {"--training.steps", "1"}).exit_code, 0);
  const std::string weights = folder_.path("first") + "/model";
  ASSERT_EQ(train_file(run_, "begun", {"--training.steps", "2", "--init-from", weights}).exit_code, 0);
  for (const char* workers : {"1", "2"}) {
    const std::string run = std::string("on_") + workers;
    const Finished finished =
        train_file(folder_.path("begun") + "/resolved.toml", run,
                   {"--resume", folder_.path("begun"), "--training.steps", "3", "--workers", workers});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    EXPECT_THAT(finished.output, HasSubstr("after step 2"));
  }
}

TEST_F(ResumedProgram, WeightsGoToHuggingFaceFoldersAndBack) {
  ASSERT_EQ(train_to_the_end("whole", {"--workers", "2", "--training.dtype", "bf16"}).exit_code, 0);
  const std::string model = folder_.path("whole") + "/model";
  const std::string exported = folder_.path("exported");
  ASSERT_EQ(run_program({"checkpoint", "export", folder_.path("whole"), "--hf", exported}).exit_code, 0);
  for (const char* file : {"/model.safetensors", "/config.json", "/tokenizer.json"}) {
    EXPECT_EQ(read_file(exported + file), read_file(model + file)) << file;
  }
  const Finished imported = run_program({"checkpoint", "import", folder_.path("store"), "--hf", exported});
  ASSERT_EQ(imported.exit_code, 0) << imported.error_output;
  EXPECT_THAT(imported.output, HasSubstr("--init-from " + folder_.path("store") + "/step-0"));
  const Flags further = {"--workers", "2", "--training.dtype", "bf16", "--training.steps", "3"};
  const auto begin_with = [&](const std::string& run, const std::string& path) {
    Flags flags = further;
    flags.insert(flags.end(), {"--init-from", path});
    ASSERT_EQ(train_to_the_end(run, flags).exit_code, 0);
  };
  begin_with("from-folder", exported);
  begin_with("from-checkpoint", folder_.path("store"));
  expect_same_steps("from-folder", "from-checkpoint");
  const Finished bad =
      run_program({"checkpoint", "export", folder_.path("whole"), "--hf", exported, "--dtype", "int8"});
  EXPECT_EQ(bad.exit_code, 2);
}

TEST_F(ResumedProgram, WhatCannotBeExportedOrImportedLeavesNothing) {
  ASSERT_EQ(train_to_the_end("whole", {"--training.threads", "1"}).exit_code, 0);
  const std::string exported = folder_.path("new/exported");
  const Finished imported = run_program(
      {"checkpoint", "import", folder_.path("new/store"), "--hf", folder_.path("whole") + "/model"},
      {{"LOCKSTEP_FAILPOINTS", "checkpoint.begun:throw"}});
  EXPECT_EQ(imported.exit_code, 70) << imported.error_output;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("new")));
  const std::string shard = "whole/checkpoints/step-100/rank-0.safetensors";
  std::string damaged = read_file(folder_.path(shard));
  std::uint64_t header = 0;
  std::memcpy(&header, damaged.data(), sizeof(header));
  for (std::size_t i = sizeof(header) + header; i < damaged.size(); i += 64) damaged[i] ^= 1;
  folder_.write(shard, damaged);
  const Finished bad =
      run_program({"checkpoint", "export", folder_.path("whole/checkpoints/step-100"), "--hf", exported});
  EXPECT_EQ(bad.exit_code, 65) << bad.error_output;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("new")));
}

TEST_F(ResumedProgram, WeightsAreImportedBesideNewerCheckpointsAndOnce) {
  ASSERT_EQ(train_to_the_end("whole", {}).exit_code, 0);
  const std::string store = folder_.path("whole") + "/checkpoints";
  const Flags import = {"checkpoint", "import", store, "--hf", folder_.path("whole") + "/model"};
  const Finished imported = run_program(import);
  ASSERT_EQ(imported.exit_code, 0) << imported.error_output;
  EXPECT_THAT(imported.output, StartsWith("wrote " + store + "/step-0: "));
  const std::string before = read_file(store + "/step-0/COMMIT");
  EXPECT_NE(before, "");
  expect_refusal(run_program(import), 2, store + "/step-0 is there already");
  EXPECT_EQ(read_file(store + "/step-0/COMMIT"), before);
}

}  // namespace
}  // namespace lockstep::testing
