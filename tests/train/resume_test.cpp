// SPDX-License-Identifier: Apache-2.0
//
// A run that was stopped and goes on, on this layout or another, is the run that was never stopped.
#include "lockstep/train/resume.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/continuation.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/run.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/ranks.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Flags = std::vector<std::string>;

struct Layout {
  int workers = 1;
  Flags flags = {};
};

// Lanes and tensor lanes stay, so the numbers do.
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {1},
      {2, {"--parallelism.zero_stage", "0"}},
      {3, {"--parallelism.zero_stage", "1"}},
      {4, {"--parallelism.zero_stage", "3"}},
      {2, {"--parallelism.tensor", "2", "--parallelism.sequence_parallel", "true"}},
      {4, {"--parallelism.pipeline", "2", "--parallelism.zero_stage", "2"}},
      {8, {"--parallelism.tensor", "2", "--parallelism.pipeline", "2", "--parallelism.zero_stage", "3"}},
      {4, {"--parallelism.zero_stage", "1", "--parallelism.zero_scope", "host"}},
      {2, {"--parallelism.tensor", "2", "--parallelism.zero_stage", "0", "--parallelism.recompute", "all"}},
      {2,
       {"--parallelism.pipeline", "2", "--parallelism.schedule", "interleaved",
        "--parallelism.virtual_stages", "2"}},
      {4, {"--parallelism.pipeline", "2", "--parallelism.schedule", "zbv", "--parallelism.zero_stage", "1"}},
  };
  return all;
}

Flags operator+(Flags a, const Flags& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Trained {
  std::map<std::int64_t, double> losses;  // by step
  std::vector<std::int64_t> saved;        // steps
  std::vector<SaveReport> failed;
  std::int64_t resumed_at = 0;
  RunSummary summary;
};

class Resuming : public ::testing::Test {
 protected:
  spec::RunSpec run_of(const Flags& flags) const {
    return small_run(corpus_, family_,
                     Flags{"--parallelism.lanes", "4", "--parallelism.tensor_lanes", "2", "--validation.freq",
                           "0", "--model.dropout", "0.1", "--training.steps", "5",
                           "--training.global_batch_size", "16", "--optimizer.lr", "0.01"} +
                         flags);
  }

  // With the store NAME. Ends after `stop_after`, if that is not 0.
  Trained train(const std::string& name, const Layout& layout, const Flags& flags = {},
                std::int64_t stop_after = 0) const {
    const spec::RunSpec run = run_of(layout.flags + flags);
    Trained trained;
    test::run_ranks(layout.workers, [&](const comm::Communicator& world) {
      std::int64_t step = 0;
      RunHooks hooks = {.wants_to_stop = [&] { return stop_after > 0 && step >= stop_after; },
                        .checkpoints = store(name)};
      hooks.after_step = [&](const StepReport& report) {
        step = report.step;
        if (world.rank() == 0) trained.losses[report.step] = report.loss;
      };
      if (world.rank() == 0) {
        hooks.resumed = [&](const Resumed& from) { trained.resumed_at = from.progress.step; };
        hooks.saved = [&](const SaveReport& report) {
          if (report.is_good) trained.saved.push_back(report.step);
          if (!report.is_good) trained.failed.push_back(report);
        };
      }
      const RunSummary summary = run_training(run, world, hooks);
      if (world.rank() == 0) trained.summary = summary;
    });
    return trained;
  }

  std::string store(const std::string& name) const { return folder_.path(name); }

  std::string newest_hash(const std::string& name) const {
    checkpoint::Checkpoint newest(checkpoint::find_checkpoint(store(name)));
    return to_text(checkpoint::logical_hash(newest));
  }

  // Trains 2 steps on one layout and the rest on another; all must be as if nothing had happened.
  void expect_no_difference(const Layout& first, const Layout& second, const Flags& flags,
                            const Trained& whole, const std::string& hash) {
    const std::string name = "try" + std::to_string(tries_++);
    const Trained begun = train(name, first, flags, 2);
    EXPECT_THAT(begun.saved, ElementsAre(2));
    const Trained ended = train(name, second, flags + Flags{"--checkpoint.resume", "auto"});
    EXPECT_EQ(ended.resumed_at, 2);
    Trained both = begun;
    both.losses.insert(ended.losses.begin(), ended.losses.end());
    EXPECT_EQ(both.losses, whole.losses);
    EXPECT_EQ(newest_hash(name), hash);
  }

  TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::string family_ = "gpt";
  int tries_ = 0;
};

TEST_F(Resuming, EveryLayoutLeavesTheSameState) {
  for (const Flags& flags : {Flags{"--training.dtype", "fp32"}, Flags{"--training.dtype", "bf16"}}) {
    std::string expected;
    for (const Layout& layout : layouts()) {
      const std::string name = "all" + std::to_string(tries_++);
      train(name, layout, flags + Flags{"--training.steps", "2"});
      if (expected.empty()) expected = newest_hash(name);
      EXPECT_EQ(newest_hash(name), expected) << ::testing::PrintToString(layout.flags);
    }
  }
}

TEST_F(Resuming, GoesOnOnAnyOtherLayout) {
  for (const char* family : {"gpt", "llama"}) {
    family_ = family;
    const Flags flags = {"--training.dtype", family_ == "gpt" ? "bf16" : "fp32"};
    const Trained whole = train("whole-" + family_, layouts()[1], flags);
    const std::string hash = newest_hash("whole-" + family_);
    for (std::size_t i = 0; i < layouts().size(); ++i) {
      SCOPED_TRACE(i);
      expect_no_difference(layouts()[i], layouts()[(i * 2 + 3) % layouts().size()], flags, whole, hash);
    }
  }
}

TEST_F(Resuming, KeepsWhatElseARunRemembers) {
  const std::string disk = folder_.path("disk");
  std::filesystem::create_directory(disk);
  const Flags cases[] = {
      {"--training.dtype", "fp16", "--training.loss_scale_window", "2"},
      {"--training.dtype", "fp16", "--training.initial_loss_scale", "1e9", "--training.min_loss_scale", "1"},
      {"--optimizer.name", "sgd"},
      {"--zero.offload", "disk", "--zero.offload_folder", disk, "--training.dtype", "bf16"},
      {"--lr_scheduler.warmup_steps", "3", "--lr_scheduler.decay_type", "wsd"}};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    const std::string name = "kept" + std::to_string(i);
    const Trained whole = train(name, layouts()[0], cases[i]);
    expect_no_difference(layouts()[2], layouts()[3], cases[i], whole, newest_hash(name));
  }
}

// What is written while training goes on is the state of the step that it is named after.
TEST_F(Resuming, CheckpointsOnTheWayAreThoseOfTheirSteps) {
  const Trained whole = train("often", layouts()[2],
                              {"--checkpoint.interval", "2", "--training.steps", "7",
                               "--checkpoint.keep_last", "100", "--lr_scheduler.decay_type", "constant"});
  ASSERT_GE(whole.saved.size(), 2U);
  EXPECT_EQ(whole.saved.back(), 7);
  for (const std::int64_t step : whole.saved) {
    const std::string name = "until" + std::to_string(step);
    train(name, layouts()[0],
          {"--lr_scheduler.decay_type", "constant", "--training.steps", std::to_string(step)});
    checkpoint::Checkpoint on_the_way(store("often") + "/step-" + std::to_string(step));
    EXPECT_EQ(to_text(checkpoint::logical_hash(on_the_way)), newest_hash(name)) << step;
  }
}

TEST_F(Resuming, OnlyTheNewestAreKept) {
  train("few", layouts()[1],
        {"--checkpoint.interval", "1", "--training.steps", "6", "--checkpoint.keep_last", "1"});
  const auto left = checkpoint::CheckpointStore(store("few")).committed();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left.front().step, 6);
}

TEST_F(Resuming, ThereIsNothingToDoAfterTheLastStep) {
  const Trained whole = train("done", layouts()[0]);
  const Trained again = train("done", layouts()[1], {"--checkpoint.resume", "auto"});
  EXPECT_TRUE(again.losses.empty());
  EXPECT_TRUE(again.saved.empty());
  EXPECT_EQ(again.summary.steps, 5);
  EXPECT_EQ(again.summary.loss, whole.summary.loss);
  EXPECT_FALSE(again.summary.stopped);
}

// As with a full disk: those who write nothing end for the same reason.
// --resume auto looks for it there.
TEST_F(Resuming, AnotherFolderGetsTheStepThatNothingCameAfter) {
  train("one", {2}, {}, 3);
  const spec::RunSpec run = run_of({"--checkpoint.resume", store("one")});
  test::run_ranks(2, [&](const comm::Communicator& world) {
    const RunSummary summary =
        run_training(run, world, {.wants_to_stop = [] { return true; }, .checkpoints = store("other")});
    EXPECT_TRUE(summary.stopped);
    EXPECT_EQ(summary.steps, 3);
  });
  EXPECT_EQ(newest_hash("other"), newest_hash("one"));
  EXPECT_EQ(train("other", {2}, {"--checkpoint.resume", "auto"}).resumed_at, 3);
}

TEST_F(Resuming, WhatIsRaisedAboutTrainedWeightsEndsAllRanks) {
  const spec::RunSpec run = run_of({"--training.steps", "1"});
  test::run_ranks(3, [&](const comm::Communicator& world) {
    RunHooks hooks;
    hooks.trained = [&](const model::FlatLayout&, const at::Tensor&) {
      if (world.rank() == 0) throw UsageError("no space");
    };
    const auto trains = [&] { run_training(run, world, hooks); };
    if (world.rank() == 0) {
      EXPECT_EQ(error_of<UsageError>(trains), "no space");
    } else {
      EXPECT_THROW(trains(), ToldElsewhere);
    }
  });
}

TEST_F(Resuming, AutoBeginsANewRunWhenThereIsNone) {
  const Trained fresh = train("fresh", layouts()[0], {"--checkpoint.resume", "auto"});
  EXPECT_EQ(fresh.resumed_at, 0);
  EXPECT_EQ(fresh.losses.size(), 5U);
}

TEST_F(Resuming, LanesAreThoseOfTheCheckpointUnlessGiven) {
  const spec::RunSpec saved = run_of({});
  checkpoint::Manifest manifest;
  manifest.configuration = spec::to_toml(saved);
  spec::RunSpec other = saved;
  other.parallelism.lanes = 0;
  other.parallelism.tensor_lanes = 0;
  other.training.global_batch_size = 0;
  EXPECT_EQ(checkpoint::continued(other, manifest, "c"), saved);
  other.parallelism.lanes = 8;
  EXPECT_EQ(checkpoint::continued(other, manifest, "c").parallelism.lanes, 8);
}

// Such as older versions let pass; how a run was validated, cut and saved does not matter to whoever goes on.
TEST_F(Resuming, ASavedLayoutMayContradictItself) {
  spec::RunSpec saved = run_of({});
  saved.validation.freq = 100;
  saved.data.validation.clear();
  saved.parallelism.schedule = "zbv";
  saved.parallelism.virtual_stages = 2;
  saved.parallelism.part_blocks = {2, 2};
  saved.checkpoint = {.enabled = false, .interval = 10, .resume = "runs/a", .initial_load_path = "runs/b"};
  checkpoint::Manifest manifest;
  manifest.configuration = spec::to_toml(saved);
  EXPECT_NO_THROW(checkpoint::require_same_training(run_of({}), manifest, "c"));
}

// What adapts a loss scale is no part of a run with a fixed one.
TEST_F(Resuming, ASavedLossScaleMayContradictItself) {
  const Flags fixed = {"--training.dtype", "fp16", "--training.loss_scale", "8"};
  spec::RunSpec saved = run_of(fixed);
  saved.training.initial_loss_scale = 1024;
  saved.training.loss_scale_window = 10;
  saved.training.min_loss_scale = 2;
  checkpoint::Manifest manifest;
  manifest.configuration = spec::to_toml(saved);
  EXPECT_EQ(checkpoint::saved_run(manifest, "c").training, saved.training);
  EXPECT_NO_THROW(checkpoint::require_same_training(run_of(fixed), manifest, "c"));
  const spec::RunSpec adapted = run_of({"--training.dtype", "fp16"});
  EXPECT_THROW(checkpoint::require_same_training(adapted, manifest, "c"), UsageError);
}

// The lanes of a run without them are those of two workers; the manifest of the newest is not readable.
TEST_F(Resuming, ABadManifestDoesNotHideTheLanesOfAnOlderOne) {
  const Flags flags = {"--checkpoint.interval", "2"};
  train("one", layouts()[0], flags, 3);  // saves steps 2 and 3
  folder_.write("one/step-3/manifest.json", "{");
  spec::RunSpec run = run_of(flags + Flags{"--checkpoint.resume", "auto"});
  run.parallelism.lanes = 0;
  EXPECT_EQ(as_saved(run, store("one")).parallelism.lanes, 4);
  run.checkpoint.resume = "";
  EXPECT_EQ(as_saved(run, store("one")).parallelism.lanes, 0);
}

TEST_F(Resuming, AnotherRunIsRefusedWithTheKey) {
  train("one", layouts()[0], {}, 2);
  const auto refusal = [&](const std::string& key, const std::string& value) {
    return error_of<UsageError>([&] {
      train("one", layouts()[1], {"--checkpoint.resume", "auto", key, value});
    });
  };
  EXPECT_THAT(refusal("--optimizer.lr", "0.02"), HasSubstr("optimizer.lr is 0.02, but "));
  EXPECT_THAT(refusal("--optimizer.lr", "0.02"), HasSubstr("was trained with 0.01"));
  EXPECT_THAT(refusal("--training.seed", "7"), HasSubstr("training.seed is 7"));
  EXPECT_THAT(refusal("--parallelism.lanes", "8"), HasSubstr("parallelism.lanes is 8"));
  EXPECT_THAT(refusal("--training.dtype", "bf16"), HasSubstr("training.dtype"));
  EXPECT_THAT(refusal("--model.layers", "3"), HasSubstr("model.layers is 3"));
  const TemporaryFolder elsewhere;
  std::vector<data::Token> tokens;
  for (std::uint32_t i = 0; i < 2000; ++i) tokens.push_back(i % 59);
  EXPECT_THAT(refusal("--data.train", write_corpus(elsewhere, tokens)),
              HasSubstr("data.train has other samples"));
}

void flip_a_byte(const std::string& checkpoint) {
  const std::string file = checkpoint + "/rank-0.safetensors";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-1, std::ios::end);
  const char last = static_cast<char>(stream.get());
  stream.seekp(-1, std::ios::end);
  stream.put(static_cast<char>(last ^ 1));
}

TEST_F(Resuming, FallsBackToTheNewestGoodOne) {
  const Flags flags = {"--training.dtype", "bf16", "--checkpoint.interval", "2"};
  const Trained whole = train("whole", layouts()[0], flags);
  train("bad", layouts()[2], flags, 3);  // saves steps 2 and 3
  flip_a_byte(store("bad") + "/step-3");
  const Trained again = train("bad", layouts()[3], flags + Flags{"--checkpoint.resume", "auto"});
  EXPECT_EQ(again.resumed_at, 2);
  EXPECT_EQ(again.losses.at(5), whole.losses.at(5));
  EXPECT_EQ(newest_hash("bad"), newest_hash("whole"));
}

TEST_F(Resuming, NeverTakesABadOne) {
  train("bad", layouts()[1], {"--checkpoint.interval", "2"}, 3);
  flip_a_byte(store("bad") + "/step-3");
  EXPECT_THAT(error_of<DataError>([&] {
                train("bad", layouts()[1], {"--checkpoint.resume", store("bad") + "/step-3"});
              }),
              HasSubstr("rank-0.safetensors"));
  flip_a_byte(store("bad") + "/step-2");
  EXPECT_THAT(error_of<DataError>([&] {
                train("bad", layouts()[1], {"--checkpoint.resume", "auto"});
              }),
              HasSubstr("none of the 2 checkpoints to go on from is good"));
}

TEST_F(Resuming, ANewRunCanBeginWithTheWeights) {
  const Trained first = train("first", layouts()[4], {"--training.dtype", "bf16"});
  const Flags slow = {"--training.dtype", "fp32", "--optimizer.lr",  "1e-30", "--optimizer.weight_decay", "0",
                      "--training.steps", "1",    "--model.dropout", "0"};
  const Trained one =
      train("next", layouts()[0], slow + Flags{"--checkpoint.initial_load_path", store("first")});
  const Trained other = train("other", layouts()[6],
                              slow + Flags{"--checkpoint.initial_load_path", store("first") + "/step-5"});
  EXPECT_EQ(one.losses, other.losses);
  const Trained fresh = train("fresh", layouts()[0], slow);
  EXPECT_NE(one.losses, fresh.losses);
}

// Also where the tensors that it needs are there, and of the right shapes.
TEST_F(Resuming, ANewRunOfAnotherModelIsToldTheKey) {
  family_ = "llama";
  train("first", layouts()[0], {}, 1);
  const auto refusal = [&](const std::string& key, const std::string& value) {
    return error_of<UsageError>([&] {
      train("next", layouts()[1], {"--checkpoint.initial_load_path", store("first"), key, value});
    });
  };
  EXPECT_THAT(refusal("--model.layers", "1"),
              HasSubstr("/step-1/manifest.json says layers = 2, but [model] of the run says layers = 1"));
  EXPECT_THAT(refusal("--model.heads", "2"), HasSubstr("says heads = 4"));
  EXPECT_THAT(refusal("--model.rope_theta", "5000"), HasSubstr("says rope_theta = 10000"));
  EXPECT_FALSE(std::filesystem::exists(store("next")));
}

TEST_F(Resuming, TrainingGoesOnWhenTheDiskDoesNot) {
  std::ofstream(folder_.path("file")) << "in the way";
  const Flags flags = {"--checkpoint.interval", "1", "--checkpoint.max_failures", "3"};
  Trained trained;
  const std::string reason = error_of<UsageError>([&] { trained = train("file", layouts()[1], flags); });
  EXPECT_THAT(reason, HasSubstr("checkpoints in a row could not be written"));
  EXPECT_THAT(reason, HasSubstr("file"));
  EXPECT_THAT(error_of<UsageError>([&] { train("file", layouts()[1]); }),
              HasSubstr("the last checkpoint, of step 5, could not be written"));
}

}  // namespace
}  // namespace lockstep::train
