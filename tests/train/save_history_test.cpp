// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of a run whose workers come and go.
#include "lockstep/train/save_history.h"

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
    if (world.rank() == 1) known = {3, 2, Clock::now() - 1000s, SaveCost{0.5, 5}};
    if (world.rank() == 2) known = {1, 4, Clock::now() - 9000s, SaveCost{7, 70}};  // was away for a while
    agree_on(known, world);
    EXPECT_EQ(known.ended, 3);
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
  // A world of two, of which one knows `history` and the other is new.
  SaveHistory train(const std::string& store, const std::vector<std::string>& flags,
                    const SaveHistory& history) {
    const spec::RunSpec run = small_run(corpus_, "gpt", flags);
    SaveHistory after;
    test::run_ranks(2, [&](const comm::Communicator& world) {
      SaveHistory known = world.rank() == 1 ? history : SaveHistory();
      RunHooks hooks = {.checkpoints = folder_.path(store)};
      hooks.saves = &known;
      if (world.rank() == 0) hooks.saved = [&](const SaveReport& report) { saved_.push_back(report.step); };
      run_training(run, world, hooks);
      if (world.rank() == 0) after = known;
    });
    return after;
  }

  test::TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::vector<std::int64_t> saved_;
};

TEST_F(SavesOfWorlds, TimeGoesOn) {
  const std::vector<std::string> flags = {"--training.steps", "3", "--checkpoint.interval_seconds", "600"};
  const SaveHistory after = train("store", flags, {2, 1, Clock::now() - 601s, std::nullopt});
  EXPECT_THAT(saved_, ElementsAre(1, 3)) << "it was time for one, and the last step has one";
  EXPECT_EQ(after.ended, 4);
  EXPECT_EQ(after.failures, 0);
  EXPECT_TRUE(after.cost);
  EXPECT_LT(Clock::now() - after.last_began, 601s);
}

TEST_F(SavesOfWorlds, FailuresInARowAreCountedOn) {
  std::ofstream(folder_.path("file")) << "in the way";
  const std::vector<std::string> flags = {"--training.steps", "3", "--checkpoint.max_failures", "3"};
  EXPECT_THAT(test::error_of<UsageError>([&] {
                train("file", flags, {2, 2, Clock::now(), std::nullopt});
              }),
              HasSubstr("3 checkpoints in a row could not be written"));
}

}  // namespace
}  // namespace lockstep::train
