// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/store.h"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using testing::full_tensor;
using testing::FullTensor;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<FullTensor> tensors(int variant) {
  return {full_tensor("model.a", {3, 4}, variant), full_tensor("model.b", {5}, variant)};
}

// No lockstep::Error.
struct GivenUp {};

class Store : public ::testing::Test {
 protected:
  void save(std::int64_t step, int variant = 0, const std::string& id = "a") {
    const auto content = tensors(variant);
    testing::save(store_, disk_, content, testing::uncut(content), testing::manifest_of(content, step), id);
  }
  std::string path(const std::string& name) const { return folder_.path("s/" + name); }
  std::vector<std::string> names() const { return test::names_in(store_.folder()); }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const Listed& listed : store_.committed()) found.push_back(listed.step);
    return found;
  }
  int variant_of(const std::string& checkpoint) const {
    Checkpoint opened(checkpoint);
    return static_cast<int>(testing::read_all(opened, "model.a")[0]);
  }
  void damage(const std::string& step) { folder_.write("s/" + step + "/rank-0.safetensors", "damaged"); }

  test::TemporaryFolder folder_;
  testing::HastyDisk disk_;
  CheckpointStore store_ = CheckpointStore(folder_.path("s"), disk_);
};

TEST_F(Store, HasNothingBeforeTheFirst) {
  EXPECT_THAT(store_.committed(), ElementsAre());
  EXPECT_THAT(store_.incomplete(), ElementsAre());
  EXPECT_THAT(store_.collect({}), ElementsAre());
  EXPECT_THAT(error_of<UsageError>([&] { find_checkpoint(store_.folder()); }), HasSubstr("does not exist"));
  EXPECT_THAT(error_of<UsageError>([&] { find_checkpoint(folder_.path("")); }),
              HasSubstr("has no checkpoint"));
  EXPECT_EQ(find_store(folder_.path("")), std::nullopt);
}

TEST_F(Store, ListsTheNewestFirst) {
  for (const std::int64_t step : {5, 100, 20, 0}) save(step);
  EXPECT_THAT(store_.committed(), ElementsAre(Listed{100, path("step-100")}, Listed{20, path("step-20")},
                                              Listed{5, path("step-5")}, Listed{0, path("step-0")}));
  EXPECT_EQ(folder_.read("s/latest"), "step-100\n");
  EXPECT_THAT(names(), UnorderedElementsAre("step-0", "step-5", "step-20", "step-100", "latest"));
  EXPECT_THAT(std::distance(std::filesystem::directory_iterator(path("step-5")), {}), 3);
}

TEST_F(Store, AFolderWithoutCommitIsNotListed) {
  save(5);
  save(6);
  std::filesystem::remove(path("step-6/COMMIT"));
  EXPECT_THAT(steps(), ElementsAre(5));
  for (const char* text : {"", "lockstep-checkpoint ", "lockstep-checkpoint 0123456789abcdef0123456789abcdef",
                           "lockstep-checkpoint 0123456789abcdef0123456789abcdeg\n", "x\n"}) {
    folder_.write("s/step-6/COMMIT", text);
    EXPECT_THAT(steps(), ElementsAre(5)) << text;
  }
  ASSERT_EQ(store_.incomplete().size(), 1U);
  EXPECT_EQ(store_.incomplete()[0].folder, (Listed{6, path("step-6")}));
  EXPECT_THAT(store_.incomplete()[0].reason, HasSubstr("was never committed"));
}

TEST_F(Store, LeavesAloneWhatIsNotItsOwn) {
  save(5);
  for (const char* name : {"notes.txt", "step-5.txt/x", "step-/x", "step-05/x", "step--1/x",
                           "step-7.partial-/x", "step-7.partial-a_b/x", "step-7.other-a/x", "Step-7/x"}) {
    folder_.write("s/" + std::string(name), "mine");
  }
  const auto before = names();
  store_.remove_leftovers();
  store_.collect({.last = 1});
  EXPECT_THAT(store_.incomplete(), ElementsAre());
  EXPECT_THAT(steps(), ElementsAre(5));
  EXPECT_THAT(names(), ::testing::UnorderedElementsAreArray(before));
}

TEST_F(Store, AStepIsReplaced) {
  save(5, 1);
  save(7, 2);
  save(5, 3, "b");
  EXPECT_THAT(steps(), ElementsAre(7, 5));
  EXPECT_EQ(variant_of(path("step-5")), 3);
  EXPECT_EQ(folder_.read("s/latest"), "step-7\n");
  EXPECT_THAT(names(), UnorderedElementsAre("step-5", "step-7", "latest"));
}

TEST_F(Store, WhatIsInThePlaceOfAStepWithoutCommitIsReplacedToo) {
  save(5, 1);
  std::filesystem::remove(path("step-5/COMMIT"));
  save(5, 2, "b");
  EXPECT_EQ(variant_of(path("step-5")), 2);
  EXPECT_THAT(names(), UnorderedElementsAre("step-5", "latest"));
}

// As a crash leaves it that comes when the old one has made room.
TEST_F(Store, AStepThatWasBeingReplacedStillCounts) {
  save(5, 1);
  std::filesystem::rename(path("step-5"), path("step-5.old-b"));
  EXPECT_THAT(store_.committed(), ElementsAre(Listed{5, path("step-5.old-b")}));
  EXPECT_EQ(variant_of(find_checkpoint(store_.folder())), 1);
  store_.collect({.last = 1});
  EXPECT_THAT(steps(), ElementsAre(5));

  save(5, 2, "c");
  EXPECT_THAT(store_.committed(), ElementsAre(Listed{5, path("step-5")}, Listed{5, path("step-5.old-b")}));
  EXPECT_THAT(store_.collect({.last = 2}), ElementsAre());
  EXPECT_THAT(store_.committed(), ElementsAre(Listed{5, path("step-5")}));
}

TEST_F(Store, AShardCanBeGivenUpBetweenBlocks) {
  constexpr std::size_t kElements = 3 * kBlockBytes / sizeof(float);
  const FullTensor tensor = full_tensor("model.a", {std::int64_t{kElements}});
  const std::vector<OutgoingPiece> pieces = {
      {.tensor = tensor.logical.name,
       .elements = {.first = 0, .length = kElements, .distance = kElements, .count = 1},
       .values = [&] { return std::span<const float>(tensor.values); }}};
  store_.begin(5, "a");
  const std::string staging = store_.staging_folder(5, "a");
  const std::string report = staging + "/" + report_name(0);
  int calls = 0;
  const auto write_until = [&](int last) {
    calls = 0;
    write_shard(disk_, staging, 0, pieces, [&] {
      if (++calls == last) throw GivenUp();
    });
  };
  write_until(0);
  EXPECT_TRUE(std::filesystem::exists(report));
  EXPECT_EQ(calls, 3 + 1 + 4 + 1) << "blocks, the sync, what is read again with the header, the report";
  std::filesystem::remove(report);
  for (int last = calls; last > 0; --last) {
    EXPECT_THROW(write_until(last), GivenUp);
    EXPECT_FALSE(std::filesystem::exists(report)) << last;
  }
}

// Waits for the disk since they were last counted.
class CountingDisk : public testing::HastyDisk {
 public:
  int take_waits() { return std::exchange(waits_, 0); }
  void sync_folder(const std::string&) override { ++waits_; }

 protected:
  void sync_file() override { ++waits_; }

 private:
  int waits_ = 0;
};

TEST_F(Store, ACommitCanBeGivenUpUntilItCounts) {
  save(5, 1);
  const auto content = tensors(2);
  CountingDisk disk;
  CheckpointStore store(store_.folder(), disk);
  const auto is_given_up = [&](int last) {
    store.begin(5, "b");
    testing::write_rank(disk, store.staging_folder(5, "b"), 0, content, testing::uncut(content)[0]);
    disk.take_waits();
    int calls = 0;
    try {
      store.commit("b", testing::manifest_of(content, 5), 1, [&] {
        EXPECT_LE(disk.take_waits(), 1);
        if (++calls == last) throw GivenUp();
      });
    } catch (const GivenUp&) {
      return true;
    }
    return false;
  };
  int moments = 0;
  while (is_given_up(moments + 1)) {
    ++moments;
    EXPECT_EQ(variant_of(path("step-5")), 1);
    EXPECT_THAT(names(), UnorderedElementsAre("step-5", "latest"));
  }
  EXPECT_EQ(moments, 7) << "the report, the manifest, the report again, COMMIT, two syncs, the rename";
  EXPECT_EQ(variant_of(path("step-5")), 2);
}

// Ranks that hear of a checkpoint before its leader does may be at the next one already.
TEST_F(Store, CollectingLeavesAloneWhatIsBeingWritten) {
  for (const std::int64_t step : {5, 10}) save(step);
  folder_.write("s/step-15.partial-next/rank-1.safetensors", "half");
  EXPECT_THAT(store_.collect({.last = 1}), ElementsAre(5));
  EXPECT_THAT(names(), UnorderedElementsAre("step-10", "step-15.partial-next", "latest"));
}

TEST_F(Store, CollectingCanBeGivenUp) {
  for (const std::int64_t step : {5, 10, 15}) save(step);
  int calls = 0;
  const auto collect_until = [&](int last) {
    calls = 0;
    return store_.collect({.last = 1}, [&] {
      if (++calls == last) throw GivenUp();
    });
  };
  EXPECT_THROW(collect_until(1), GivenUp);
  EXPECT_THAT(steps(), ElementsAre(15, 10, 5)) << "none is bad, and none too many";
  EXPECT_THROW(collect_until(calls + 2), GivenUp);
  EXPECT_THAT(store_.collect({.last = 1}), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(steps(), ElementsAre(15));
}

TEST_F(Store, RanksThatDoNotShareAFolderAreTold) {
  const auto content = tensors(1);
  store_.begin(5, "a");
  testing::write_rank(disk_, store_.staging_folder(5, "a"), 0, content, testing::uncut(content)[0]);
  EXPECT_THAT(error_of<UsageError>([&] { store_.commit("a", testing::manifest_of(content, 5), 2); }),
              HasSubstr("rank-1.json is missing: all ranks must write into the same folder"));
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(Store, PiecesThatDoNotMakeUpTheTensorsAreNotCommitted) {
  save(5, 1);
  const auto content = tensors(2);
  store_.begin(5, "b");
  testing::write_rank(disk_, store_.staging_folder(5, "b"), 0, content, {{0, {0, 12, 12, 1}}});
  EXPECT_THAT(error_of<DataError>([&] { store_.commit("b", testing::manifest_of(content, 5), 1); }),
              HasSubstr("tensor 'model.b' has no piece with element 0"));
  EXPECT_THAT(names(), UnorderedElementsAre("step-5", "latest"));
  EXPECT_EQ(variant_of(path("step-5")), 1);
}

// Somebody has removed the staging folder: that must not cost the good one of the same step.
TEST_F(Store, AnAttemptThatIsGoneDoesNoHarm) {
  save(5, 1);
  store_.begin(5, "b");
  std::filesystem::remove_all(store_.staging_folder(5, "b"));
  EXPECT_THROW(store_.commit("b", testing::manifest_of(tensors(2), 5), 1), UsageError);
  EXPECT_EQ(variant_of(path("step-5")), 1);
}

TEST_F(Store, AnIdIsAPlainName) {
  for (const char* id : {"", "../x", "a/b", "a.b", "a b"}) {
    EXPECT_THROW(store_.begin(5, id), InternalError) << id;
  }
}

TEST_F(Store, KeepsTheLastAndEveryNth) {
  for (const std::int64_t step : {10, 15, 20, 25, 30, 35}) save(step);
  EXPECT_THAT(store_.collect({.last = 2, .every = 20}), UnorderedElementsAre(10, 15, 25));
  EXPECT_THAT(steps(), ElementsAre(35, 30, 20));
  EXPECT_THAT(store_.collect({.last = 2, .every = 20}), ElementsAre());
  EXPECT_THAT(store_.collect({.last = 1}), UnorderedElementsAre(20, 30));
  EXPECT_THAT(store_.collect({.last = 1}), ElementsAre());
  EXPECT_THAT(steps(), ElementsAre(35));
}

// As when a run has gone back, or a writer that was given up comes late.
TEST_F(Store, KeepsWhatItHasJustCommitted) {
  for (const std::int64_t step : {30, 40, 15}) save(step);
  EXPECT_THAT(store_.collect({.last = 2}), ElementsAre());
  EXPECT_THAT(steps(), ElementsAre(40, 30, 15));
  save(15, 1, "b");
  EXPECT_THAT(store_.collect({.last = 2}), ElementsAre());
  EXPECT_EQ(variant_of(path("step-15")), 1);
  save(20);
  EXPECT_THAT(store_.collect({.last = 2}), ElementsAre(15));
  EXPECT_THAT(steps(), ElementsAre(40, 30, 20));
}

TEST_F(Store, BadOnesDoNotCount) {
  for (const std::int64_t step : {10, 20, 30, 40}) save(step);
  damage("step-40");
  damage("step-20");
  EXPECT_THAT(store_.collect({.last = 2}), ElementsAre(20));
  EXPECT_THAT(steps(), ElementsAre(40, 30, 10)) << "40 is bad, and newer than all good ones";
  save(50);
  EXPECT_THAT(store_.collect({.last = 2}), UnorderedElementsAre(40, 10));
  EXPECT_THAT(steps(), ElementsAre(50, 30));
}

TEST_F(Store, WithoutAGoodOneNothingIsRemoved) {
  for (const std::int64_t step : {10, 20}) save(step);
  damage("step-10");
  damage("step-20");
  EXPECT_THAT(store_.collect({.last = 1}), ElementsAre());
  EXPECT_THAT(steps(), ElementsAre(20, 10));
}

// A disk that fails for a moment must not make us believe that there is no checkpoint.
TEST_F(Store, WhatCannotBeReadIsNotRemoved) {
  save(5, 1);
  std::filesystem::rename(path("step-5/COMMIT"), path("step-5/elsewhere"));
  std::filesystem::create_directory(path("step-5/COMMIT"));
  save(6);
  EXPECT_THAT(steps(), ElementsAre(6));
  store_.remove_leftovers();
  store_.collect({.last = 1});
  std::filesystem::remove(path("step-5/COMMIT"));
  std::filesystem::rename(path("step-5/elsewhere"), path("step-5/COMMIT"));
  EXPECT_THAT(steps(), ElementsAre(6, 5));
  EXPECT_EQ(variant_of(path("step-5")), 1);
}

TEST_F(Store, RemovesWhatDeadAttemptsHaveLeft) {
  save(5);
  folder_.write("s/step-6.partial-x/rank-0.safetensors", "half");
  folder_.write("s/step-6/manifest.json", "never committed");
  folder_.write("s/step-4.old-x/rank-0.safetensors", "being removed");
  store_.begin(7, "mine");
  EXPECT_EQ(store_.incomplete().size(), 4U);
  store_.remove_leftovers();
  EXPECT_THAT(names(), UnorderedElementsAre("step-5", "step-7.partial-mine", "latest"));
  store_.abandon(7, "mine");
  EXPECT_THAT(names(), UnorderedElementsAre("step-5", "latest"));
}

TEST_F(Store, IsFoundByItsOwnNameThatOfTheRunAndThatOfACheckpoint) {
  CheckpointStore in_run(folder_.path("run/checkpoints"), disk_);
  const auto content = tensors(1);
  for (const std::int64_t step : {1, 2}) {
    testing::save(in_run, disk_, content, testing::uncut(content), testing::manifest_of(content, step));
  }
  const std::string newest = folder_.path("run/checkpoints/step-2");
  for (const std::string& name : {newest, folder_.path("run/checkpoints"), folder_.path("run")}) {
    EXPECT_EQ(find_checkpoint(name), newest);
  }
  EXPECT_EQ(find_checkpoint(folder_.path("run/checkpoints/step-1")), folder_.path("run/checkpoints/step-1"));
  EXPECT_EQ(find_store(folder_.path("run")), folder_.path("run/checkpoints"));
  std::filesystem::remove(newest + "/COMMIT");
  std::filesystem::remove(folder_.path("run/checkpoints/step-1/COMMIT"));
  EXPECT_THAT(error_of<UsageError>([&] { find_checkpoint(folder_.path("run")); }),
              HasSubstr("no checkpoint in " + folder_.path("run/checkpoints") + " was committed"));
}

TEST_F(Store, AShardIsReadAgain) {
  testing::LyingDisk disk;
  const auto content = tensors(1);
  std::filesystem::create_directories(path("x"));
  EXPECT_THAT(error_of<DataError>(
                  [&] { testing::write_rank(disk, path("x"), 3, content, testing::uncut(content)[0]); }),
              HasSubstr("rank-3.safetensors is not what was written a moment ago"));
  EXPECT_FALSE(std::filesystem::exists(path("x/rank-3.json")));
}

TEST_F(Store, ARankMayHaveNothing) {
  const auto content = tensors(1);
  testing::Cut cut = testing::uncut(content);
  cut.push_back({{0, {4, 0, 0, 1}}});
  cut.push_back({});
  testing::save(store_, disk_, content, cut, testing::manifest_of(content, 5));
  Checkpoint checkpoint(path("step-5"));
  checkpoint.verify();
  EXPECT_EQ(checkpoint.manifest().files.size(), 3U);
  EXPECT_EQ(testing::read_all(checkpoint, "model.b"), content[1].values);
}

}  // namespace
}  // namespace lockstep::checkpoint
