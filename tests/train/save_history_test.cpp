// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of a run whose workers come and go.
#include "lockstep/train/save_history.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/train/run.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/ranks.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SaveHistory, IsThatOfWhoHasSeenTheMost) {
  test::run_ranks(3, [](const comm::Communicator& world) {
    SaveHistory known;  // of a worker that is new
    if (world.rank() == 1) known = {3, 40, 2, Clock::now() - 1000s, SaveCost{0.5, 5}};
    if (world.rank() == 2) known = {1, 60, 4, Clock::now() - 9000s, SaveCost{7, 70}};  // was away for a while
    agree_on(known, world);
    EXPECT_EQ(known.ended, 3);
    EXPECT_EQ(known.step, 40);
    EXPECT_EQ(known.failures, 2);
    EXPECT_GE(Clock::now() - known.last_began, 1000s);
    EXPECT_LT(Clock::now() - known.last_began, 9000s);
    ASSERT_TRUE(known.cost);
    EXPECT_EQ(known.cost->stall_seconds, 0.5);
    EXPECT_EQ(known.cost->seconds, 5);
  });
}

class SavesOfWorlds : public ::testing::Test {
 protected:
  // What a world of two has in memory after `step` is what the next ones go on from.
  void keep_after(std::int64_t step, const std::vector<std::string>& flags) {
    const spec::RunSpec run = small_run(corpus_, "gpt", flags);
    test::run_ranks(2, [&](const comm::Communicator& world) {
      RunHooks hooks;
      hooks.agree = [&](std::int64_t agreed) { return agreed == step; };
      Training training(run, world, hooks);
      ASSERT_TRUE(training.train().regroups);
      training.settle(step);
      kept_[static_cast<std::size_t>(world.rank())] = training.keep({});
    });
  }

  // A world of two, of which one knows `history` and the other is new.
  SaveHistory train(const std::string& store, const std::vector<std::string>& flags,
                    const SaveHistory& history) {
    const spec::RunSpec run = small_run(corpus_, "gpt", flags);
    SaveHistory after;
    test::run_ranks(2, [&](const comm::Communicator& world) {
      SaveHistory known = world.rank() == 1 ? history : SaveHistory();
      RunHooks hooks = {.checkpoints = folder_.path(store)};
      hooks.saves = &known;
      hooks.kept = &kept_[static_cast<std::size_t>(world.rank())];
      if (world.rank() == 0) hooks.saved = [&](const SaveReport& report) { saved_.push_back(report.step); };
      run_training(run, world, hooks);
      if (world.rank() == 0) after = known;
    });
    return after;
  }

  test::TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::vector<KeptState> kept_ = std::vector<KeptState>(2);
  std::vector<std::int64_t> saved_;
};

TEST_F(SavesOfWorlds, TimeGoesOn) {
  const std::vector<std::string> flags = {"--training.steps", "3", "--checkpoint.interval_seconds", "600"};
  const SaveHistory after = train("store", flags, {2, 0, 1, Clock::now() - 601s, std::nullopt});
  EXPECT_THAT(saved_, ElementsAre(1, 3)) << "it was time for one, and the last step has one";
  EXPECT_EQ(after.ended, 5) << "2, the begin of this run, and 2";
  EXPECT_EQ(after.failures, 0);
  EXPECT_TRUE(after.cost);
  EXPECT_LT(Clock::now() - after.last_began, 601s);
}

TEST_F(SavesOfWorlds, StepsGoOn) {
  std::vector<std::string> flags = {"--training.steps",  "7", "--checkpoint.interval", "4",
                                    "--validation.freq", "1"};
  keep_after(5, flags);
  EXPECT_EQ(train("validated", flags, {}).step, 7);
  EXPECT_THAT(saved_, ElementsAre(5, 7)) << "before it is validated again";
  flags.back() = "100";
  saved_.clear();
  EXPECT_EQ(train("given_up", flags, {}).step, 7);
  EXPECT_THAT(saved_, ElementsAre(6, 7)) << "that of step 4 was given up, and the last step has one";
  for (const std::int64_t failures : {0, 1}) {
    saved_.clear();
    train("ended" + std::to_string(failures), flags, {.ended = 2, .step = 4, .failures = failures});
    EXPECT_THAT(saved_, ElementsAre(7)) << "one that could not be written is not made again";
  }
}

TEST_F(SavesOfWorlds, StepsBeginAnewWithACheckpoint) {
  train("store", {"--training.steps", "4"}, {});
  const std::vector<std::string> flags = {"--training.steps",    "7",   "--checkpoint.interval", "3",
                                          "--checkpoint.resume", "auto"};
  for (const SaveHistory& before : {SaveHistory(), SaveHistory{.ended = 5, .step = 9}}) {
    const std::string store = "store" + std::to_string(before.step);
    std::filesystem::copy(folder_.path("store"), folder_.path(store),
                          std::filesystem::copy_options::recursive);
    saved_.clear();
    train(store, flags, before);
    EXPECT_THAT(saved_, ElementsAre(6, 7)) << before.step;
  }
}

TEST_F(SavesOfWorlds, FailuresInARowAreCountedOn) {
  std::ofstream(folder_.path("file")) << "in the way";
  const std::vector<std::string> flags = {"--training.steps", "3", "--checkpoint.max_failures", "3"};
  EXPECT_THAT(test::error_of<UsageError>([&] {
                train("file", flags, {2, 0, 2, Clock::now(), std::nullopt});
              }),
              HasSubstr("3 checkpoints in a row could not be written"));
}

}  // namespace
}  // namespace lockstep::train
