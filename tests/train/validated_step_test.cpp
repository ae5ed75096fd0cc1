// SPDX-License-Identifier: Apache-2.0
//
// What goes on while a step is validated: its checkpoint, and the wish to stop.
#include <atomic>
#include <chrono>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/train/run.h"

#include "tests/support/files.h"
#include "tests/support/ranks.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

using Flags = std::vector<std::string>;

class ValidatedStep : public ::testing::Test {
 protected:
  // What rank 0 has told, in this order.
  struct Told {
    std::vector<std::string> all;  // "step 1", "saved 1"
    std::map<std::int64_t, StepReport> steps;
    RunSummary summary;
    std::string error;  // instead
  };
  struct Killed : std::exception {};
  // Whether the rank wants to stop, given what rank 0 has told so far and how often it was asked. It may
  // raise Killed.
  using Wish = std::function<bool(int rank, int asked, const Told& told)>;

  spec::RunSpec run_of(const Flags& flags) const {
    Flags all = {
        "--training.steps",           "3", "--parallelism.lanes", "2", "--training.global_batch_size", "8",
        "--parallelism.tensor_lanes", "2"};
    all.insert(all.end(), flags.begin(), flags.end());
    return small_run(corpus_, "gpt", all);
  }

  // What two workers have in memory after step 1 is what those of the next run go on from.
  void keep_step_1() {
    const spec::RunSpec run = run_of({});
    kept_.resize(2);
    test::run_ranks(2, [&](const comm::Communicator& world) {
      RunHooks hooks;
      hooks.agree = [](std::int64_t) { return true; };
      Training training(run, world, hooks);
      ASSERT_TRUE(training.train().regroups);
      training.settle(1);
      kept_[static_cast<std::size_t>(world.rank())] = training.keep({});
    });
  }

  Told train(const std::string& store, int workers, const Flags& flags, const Wish& wish = nullptr) {
    const spec::RunSpec run = run_of(flags);
    Told told;
    asked_.assign(static_cast<std::size_t>(workers), 0);
    saves_.assign(static_cast<std::size_t>(workers), {});
    test::run_ranks(workers, [&](const comm::Communicator& world) {
      int& asked = asked_[static_cast<std::size_t>(world.rank())];
      RunHooks hooks = {.checkpoints = folder_.path(store)};
      if (!kept_.empty()) hooks.kept = &kept_[static_cast<std::size_t>(world.rank())];
      hooks.only_saves = only_saves_;
      hooks.saves = &saves_[static_cast<std::size_t>(world.rank())];
      hooks.wants_to_stop = [&] { return ++asked, wish && wish(world.rank(), asked, told); };
      if (world.rank() == 0) {
        hooks.is_untold = [](const Resumed&, bool) { return true; };
        hooks.after_step = [&](const StepReport& report) {
          told.all.push_back("step " + std::to_string(report.step));
          told.steps[report.step] = report;
        };
        hooks.saved = [&](const SaveReport& report) {
          told.all.push_back((report.is_good ? "saved " : "not saved ") + std::to_string(report.step));
        };
      }
      try {
        const RunSummary summary = run_training(run, world, hooks);
        if (world.rank() == 0) told.summary = summary;
      } catch (const Killed&) {
      } catch (const Error& error) {
        if (world.rank() == 0) told.error = error.what();
      }
    });
    return told;
  }

  static void expect_same_steps(const Told& told, const Told& expected) {
    ASSERT_EQ(told.steps.size(), expected.steps.size());
    for (const auto& [step, report] : expected.steps) {
      EXPECT_EQ(told.steps.at(step).loss, report.loss) << step;
      EXPECT_EQ(told.steps.at(step).gradient_norm, report.gradient_norm) << step;
      EXPECT_EQ(told.steps.at(step).learning_rate, report.learning_rate) << step;
      EXPECT_EQ(told.steps.at(step).validation_loss, report.validation_loss) << step;
    }
  }

  std::size_t committed(const std::string& store) const {
    return checkpoint::CheckpointStore(folder_.path(store)).committed().size();
  }
  // A run that somebody wants to stop as soon as there is a checkpoint; the validation would not end by
  // itself.
  void expect_saved_before_it_is_told(const std::string& store, int workers, const Flags& more) {
    Flags flags = {"--validation.steps", "1000000", "--checkpoint.interval", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    std::atomic<bool> was_there = false;
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    const Told told = train(store, workers, flags, [&](int rank, int, const Told& so_far) {
      if (rank != 0) return false;
      was_there = was_there || (committed(store) == 1 && so_far.all.empty());
      return was_there || deadline.passed();
    });
    EXPECT_TRUE(was_there) << "before the step was told";
    EXPECT_TRUE(told.summary.stopped);
    EXPECT_EQ(told.summary.steps, 1);
    EXPECT_THAT(told.all, ElementsAre("step 1", "saved 1"));
    EXPECT_EQ(told.steps.at(1).validation_loss, std::nullopt);
  }

  std::string newest_hash(const std::string& store) const {
    checkpoint::Checkpoint newest(checkpoint::find_checkpoint(folder_.path(store)));
    return to_text(checkpoint::logical_hash(newest));
  }

  test::TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::vector<int> asked_;          // by rank: how often it was in the last run
  std::vector<SaveHistory> saves_;  // by rank, of the last run
  std::vector<KeptState> kept_;     // by rank; empty: nothing
  bool only_saves_ = false;
};

TEST_F(ValidatedStep, IsLeftByAllRanksAtOnceAndMadeUpForLater) {
  const Flags long_validation = {"--validation.steps", "150"};
  const Told whole = train("whole", 1, long_validation);
  const std::vector<std::pair<int, Flags>> layouts = {
      {1, {}},
      {2, {"--parallelism.zero_stage", "3"}},
      {2, {"--parallelism.pipeline", "2"}},
      {2, {"--parallelism.tensor", "2"}},
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const auto& [workers, layout] = layouts[i];
    SCOPED_TRACE(::testing::PrintToString(layout));
    const std::string store = "left" + std::to_string(i);
    Flags flags = long_validation;
    flags.insert(flags.end(), layout.begin(), layout.end());
    // The first time is before step 1, and the second before its validation.
    const Told left = train(store, workers, flags, [workers = workers](int rank, int asked, const Told&) {
      return rank == workers - 1 && asked == 4;
    });
    EXPECT_THAT(asked_, ::testing::Each(5)) << "at the fourth, and after the step was told";
    EXPECT_TRUE(left.summary.stopped);
    EXPECT_THAT(left.all, ElementsAre("step 1", "saved 1"));
    EXPECT_EQ(left.steps.at(1).validation_loss, std::nullopt);

    flags.insert(flags.end(), {"--checkpoint.resume", "auto"});
    const Told rest = train(store, workers, flags);
    EXPECT_THAT(rest.all, ElementsAre("step 1", "step 2", "step 3", "saved 3"));
    expect_same_steps(rest, whole);
    EXPECT_EQ(newest_hash(store), newest_hash("whole"));
  }
}

TEST_F(ValidatedStep, IsCommittedMeanwhileAndToldFirst) {
  for (const int workers : {1, 2}) {
    // At a step on the way, whose state is copied, and at the last one, whose state is not.
    for (const char* steps : {"3", "1"}) {
      SCOPED_TRACE(steps);
      const std::string store = std::to_string(workers) + "x" + steps;
      expect_saved_before_it_is_told(store, workers, {"--training.steps", steps});
    }
  }
}

TEST_F(ValidatedStep, OfAWorldThatWasLostIsSavedBeforeItIsValidated) {
  keep_step_1();
  for (const char* steps : {"3", "1"}) {
    expect_saved_before_it_is_told(steps, 2, {"--training.steps", steps});
  }
}

// What it saves is in its memory only.
TEST_F(ValidatedStep, IsLeftByAWorldThatOnlySavesAndMadeUpForLater) {
  keep_step_1();
  only_saves_ = true;
  const Told saved = train("store", 2, {});
  EXPECT_TRUE(saved.summary.stopped);
  EXPECT_THAT(saved.all, ElementsAre("step 1", "saved 1"));
  EXPECT_EQ(saved.steps.at(1).validation_loss, std::nullopt);

  kept_.clear();
  only_saves_ = false;
  const Told rest = train("store", 2, {"--checkpoint.resume", "auto"});
  const Told whole = train("whole", 1, {});
  EXPECT_THAT(rest.all, ElementsAre("step 1", "step 2", "step 3", "saved 3"));
  expect_same_steps(rest, whole);
  EXPECT_EQ(newest_hash("store"), newest_hash("whole"));
}

// Nobody would make up for it: the run is done.
TEST_F(ValidatedStep, IsNotLeftByAWorldThatOnlySavesTheLastOne) {
  keep_step_1();
  only_saves_ = true;
  const Told saved = train("store", 2, {"--training.steps", "1"});
  EXPECT_FALSE(saved.summary.stopped);
  EXPECT_THAT(saved.all, ElementsAre("step 1", "saved 1"));
  EXPECT_TRUE(saved.steps.at(1).validation_loss);
}

TEST_F(ValidatedStep, IsNotBegunWhenSomebodyWantsToStopBefore) {
  const Told told = train("none", 2, {}, [](int rank, int, const Told&) { return rank == 1; });
  EXPECT_TRUE(told.summary.stopped);
  EXPECT_EQ(told.summary.steps, 0);
  EXPECT_EQ(told.summary.checkpoint, "");
  EXPECT_THAT(told.all, ElementsAre());
  EXPECT_EQ(committed("none"), 0U) << "there is nothing to save";
}

TEST_F(ValidatedStep, WhoseCheckpointFailsIsWarnedAboutAlsoWhenTheWorldBreaksMeanwhile) {
  folder_.write("file", "in the way");
  const Flags flags = {"--validation.steps", "1000000", "--checkpoint.interval", "1"};
  const Told told = train("file", 2, flags, [this](int rank, int, const Told&) {
    if (rank == 1 && saves_[1].failures == 1) throw Killed();
    return false;
  });
  EXPECT_THAT(told.all, ElementsAre("not saved 1"));
  EXPECT_THAT(told.error, ::testing::HasSubstr("rank 1"));
}

TEST_F(ValidatedStep, IsToldBeforeFailuresInARowEndTheRun) {
  folder_.write("file", "in the way");
  const Flags flags = {"--validation.steps",        "1000000", "--checkpoint.interval", "1",
                       "--checkpoint.max_failures", "1"};
  const Told told = train(
      "file", 2, flags, [this](int rank, int, const Told&) { return rank == 1 && saves_[1].failures == 1; });
  EXPECT_THAT(told.all, ElementsAre("not saved 1", "step 1"));
  EXPECT_THAT(told.error, ::testing::StartsWith("1 checkpoints in a row could not be written"));
}

// With everything that the run has in memory.
TEST_F(ValidatedStep, ThatWasCommittedIsToldByTheRunThatGoesOn) {
  const Told whole = train("whole", 1, {});
  const Flags flags = {"--validation.steps", "1000000", "--checkpoint.interval", "1"};
  const Told lost = train("lost", 2, flags, [this](int rank, int, const Told&) {
    if (rank == 1 && saves_[1].step == 1) throw Killed();
    return false;
  });
  EXPECT_THAT(lost.all, ElementsAre());
  const Told rest = train("lost", 2, {"--checkpoint.resume", "auto"});
  EXPECT_THAT(rest.all, ElementsAre("step 1", "step 2", "step 3", "saved 3"));
  expect_same_steps(rest, whole);
  EXPECT_EQ(newest_hash("lost"), newest_hash("whole"));
}

// However long that takes.
TEST_F(ValidatedStep, HasOneCheckpoint) {
  const Told told =
      train("store", 2,
            {"--training.steps", "2", "--validation.steps", "200", "--checkpoint.interval_seconds", "1e-9"});
  EXPECT_THAT(told.all, UnorderedElementsAre("step 1", "saved 1", "step 2", "saved 2"));
}

}  // namespace
}  // namespace lockstep::train
