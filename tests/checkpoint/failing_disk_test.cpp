// SPDX-License-Identifier: Apache-2.0
//
// A disk that is full or broken, at every operation of a save: the save fails, the one before stays.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using ::testing::Each;
using testing::FailingDisk;
using ::testing::HasSubstr;
using testing::HastyDisk;
using ::testing::Not;

std::vector<testing::FullTensor> tensors(int variant) {
  return {testing::full_tensor("model.a", {3, 4}, variant), testing::full_tensor("model.b", {5}, variant)};
}
const testing::Cut kCut = {{{0, {0, 12, 12, 1}}}, {{1, {0, 5, 5, 1}}}};

class Broken : public ::testing::Test {
 protected:
  void save(Disk& disk, std::int64_t step, int variant) {
    CheckpointStore store(path_, disk);
    const auto content = tensors(variant);
    try {
      testing::save(store, disk, content, kCut, testing::manifest_of(content, step), "b");
    } catch (...) {
      store.abandon(step, "b");
      throw;
    }
  }
  // The variants of those that are listed, the newest first; all are good.
  std::vector<int> variants() const {
    std::vector<int> found;
    for (const Listed& listed : CheckpointStore(path_).committed()) {
      Checkpoint checkpoint(listed.path);
      checkpoint.verify();
      found.push_back(static_cast<int>(testing::read_all(checkpoint, "model.a")[0]));
    }
    return found;
  }
  std::vector<std::string> names() const { return test::names_in(path_); }

  // Saves `step` over and over, with a failure one operation later each time, until none comes any more.
  // Before each, the store has step 10 with variant 1 only.
  void sweep(std::int64_t step, bool stays_broken, const std::function<void(bool was_saved)>& check) {
    for (int failure = 1;; ++failure) {
      SCOPED_TRACE("failure at operation " + std::to_string(failure));
      std::filesystem::remove_all(path_);
      HastyDisk good;
      save(good, 10, 1);
      FailingDisk disk(failure, stays_broken);
      bool was_saved = true;
      try {
        save(disk, step, 2);
      } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("this disk fails"));
        was_saved = false;
      }
      check(was_saved);
      if (!disk.has_failed()) {
        EXPECT_GT(failure, 25);
        return;
      }
    }
  }

  test::TemporaryFolder folder_;
  std::string path_ = folder_.path("s");
};

TEST_F(Broken, AFailureLeavesTheOneBeforeAndNothingElse) {
  for (const std::int64_t step : {10, 20}) {
    sweep(step, false, [&](bool was_saved) {
      if (was_saved) {
        EXPECT_EQ(variants().front(), 2);
        EXPECT_THAT(names(), Each(Not(HasSubstr("partial"))));
      } else {
        EXPECT_THAT(variants(), ::testing::ElementsAre(1));
        EXPECT_THAT(names(), ::testing::UnorderedElementsAre("step-10", "latest"));
      }
      HastyDisk good;
      save(good, 30, 3);
      EXPECT_EQ(variants().front(), 3);
    });
  }
}

TEST_F(Broken, OneThatStaysBrokenKeepsTheOneBefore) {
  for (const std::int64_t step : {10, 20}) {
    sweep(step, true, [&](bool was_saved) {
      EXPECT_THAT(variants(), ::testing::Contains(was_saved ? 2 : 1));
      HastyDisk good;
      CheckpointStore store(path_, good);
      save(good, 30, 3);
      store.remove_leftovers();
      store.collect({.last = 1});
      EXPECT_THAT(variants(), ::testing::ElementsAre(3));
      EXPECT_THAT(names(), ::testing::IsSupersetOf({"step-30", "latest"}));
      EXPECT_THAT(store.incomplete(), ::testing::IsEmpty());
    });
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
