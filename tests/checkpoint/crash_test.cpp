// SPDX-License-Identifier: Apache-2.0
//
// At no instant does a crash lose a checkpoint that was reported as committed, or make one that is bad look
// committed. Proved by trying: after every operation on the disk of a history of saves, with many choices of
// what of the unsynced is lost, the folder that is left is opened by the real reader.
#include <algorithm>
#include <filesystem>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/crash_disk.h"
#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using ::testing::Contains;
using testing::CrashDisk;
using testing::Cut;
using testing::FullTensor;
using ::testing::HasSubstr;
using ::testing::Not;
using Fate = CrashDisk::Fate;

constexpr std::int64_t kKept = 2;

std::vector<FullTensor> tensors(int attempt) {
  return {testing::full_tensor("model.a", {2, 4}, attempt),
          testing::full_tensor("optimizer.m.a", {2, 4}, attempt)};
}
// By columns, and by rows.
const Cut kCut = {{{0, {0, 1, 4, 2}}, {1, {0, 4, 4, 1}}}, {{0, {1, 3, 4, 2}}, {1, {4, 4, 4, 1}}}};

// What was promised so far.
struct Promise {
  int newest = 0;                // the last attempt whose commit() has returned; they count from 1
  std::set<std::int64_t> steps;  // of all of them
};

void save(CheckpointStore& store, Disk& disk, std::int64_t step, int attempt, Promise& promise) {
  const auto content = tensors(attempt);
  testing::save(store, disk, content, kCut, testing::manifest_of(content, step), std::to_string(attempt));
  promise.newest = attempt;
  promise.steps.insert(step);
  store.remove_leftovers();
  store.collect({.last = kKept});
}

// Saves with retention, one that is abandoned, one that dies, and steps that are replaced.
void play(const std::string& folder, Disk& disk, Promise& promise) {
  const auto write_one_rank = [&](CheckpointStore& store, std::int64_t step, int attempt) {
    store.begin(step, std::to_string(attempt));
    testing::write_rank(disk, store.staging_folder(step, std::to_string(attempt)), 0, tensors(attempt),
                        kCut[0]);
  };
  CheckpointStore first(folder, disk);
  save(first, disk, 10, 1, promise);
  save(first, disk, 20, 2, promise);
  write_one_rank(first, 30, 3);
  first.abandon(30, "3");
  write_one_rank(first, 30, 4);
  CheckpointStore restarted(folder, disk);
  save(restarted, disk, 30, 5, promise);
  save(restarted, disk, 30, 6, promise);
  save(restarted, disk, 20, 7, promise);
  save(restarted, disk, 40, 8, promise);
}

int attempt_of(Checkpoint& checkpoint) {
  return static_cast<int>(testing::read_all(checkpoint, "model.a")[0]);
}

// The invariant, of a store as a crash has left it; empty when it holds.
std::string violation_in(const std::string& folder, const Promise& promise) {
  const std::vector<Listed> listed = CheckpointStore(folder).committed();
  std::set<std::int64_t> good;
  int newest = 0;
  for (const Listed& entry : listed) {
    try {
      Checkpoint checkpoint(entry.path);
      checkpoint.verify();
      good.insert(entry.step);
      newest = std::max(newest, attempt_of(checkpoint));
    } catch (const Error& error) {
      return std::string("looks committed and is bad: ") + error.what();
    }
  }
  if (newest < promise.newest) return "a checkpoint that was reported as committed is gone";
  // So that a disk that breaks one does not break all.
  const auto expected = std::min<std::size_t>(promise.steps.size(), kKept);
  return good.size() < expected ? "fewer good checkpoints than were to be kept" : "";
}

// Plays the history and tries crashes after each operation.
class Trial {
 public:
  explicit Trial(const std::function<void(CrashDisk&)>& prepare = [](CrashDisk&) {}) {
    CrashDisk disk(folder_.path("live"), [&] { try_crashes(disk); });
    std::filesystem::create_directories(folder_.path("live"));
    prepare(disk);
    play(folder_.path("live/s"), disk, promise_);
  }

  std::size_t states() const { return seen_.size(); }
  const std::set<std::string>& violations() const { return violations_; }

 private:
  void try_crashes(const CrashDisk& disk) {
    if (!violations_.empty()) return;
    const std::vector<bool> writes = disk.unsynced();
    const auto all_but = [&](std::size_t one, Fate fate) {
      try_state(disk.after_crash([=](std::size_t i) { return i == one ? fate : Fate::kept; }));
    };
    try_state(disk.after_crash([](std::size_t) { return Fate::kept; }));
    try_state(disk.after_crash([](std::size_t) { return Fate::lost; }));
    for (std::size_t one = 0; one < writes.size(); ++one) {
      try_state(disk.after_crash([=](std::size_t i) { return i == one ? Fate::kept : Fate::lost; }));
      all_but(one, Fate::lost);
      if (writes[one]) all_but(one, Fate::torn);
    }
    for (int half = 0; half < 8; ++half) {
      std::vector<Fate> fates(writes.size());
      for (Fate& fate : fates) fate = random_() % 2 == 0 ? Fate::kept : Fate::lost;
      try_state(disk.after_crash([&](std::size_t i) { return fates[i]; }));
    }
  }

  void try_state(const CrashDisk::Content& content) {
    if (!seen_.insert({promise_.newest, content}).second) return;
    const test::TemporaryFolder crashed;
    testing::materialize(content, crashed.path(""));
    const std::string violation = violation_in(crashed.path("s"), promise_);
    if (!violation.empty()) violations_.insert(violation);
    if (violation.empty() && seen_.size() % 16 == 0) go_on(crashed.path("s"));
  }

  // Whatever a crash has left, the next run works on it.
  void go_on(const std::string& folder) {
    testing::HastyDisk disk;
    CheckpointStore store(folder, disk);
    Promise promise = promise_;
    save(store, disk, 50, 9, promise);
    const std::string violation = violation_in(folder, promise);
    if (!violation.empty()) violations_.insert("later " + violation);
    if (!store.incomplete().empty()) violations_.insert("leftovers stay");
  }

  test::TemporaryFolder folder_;
  Promise promise_;
  std::mt19937 random_{1};
  std::set<std::pair<int, CrashDisk::Content>> seen_;
  std::set<std::string> violations_;
};

TEST(Crash, NeverLosesACheckpointOrMakesABadOneLookGood) {
  const Trial trial;
  EXPECT_THAT(trial.violations(), ::testing::IsEmpty());
  EXPECT_GT(trial.states(), 400U);
}

// Whether the trial would notice: on disks that do not keep what was synced, the promise cannot hold.
TEST(Crash, TheTrialNoticesSyncsThatAreMissing) {
  EXPECT_THAT(Trial([](CrashDisk& disk) { disk.forget_file_syncs(); }).violations(),
              Contains(HasSubstr("looks committed and is bad")));
  EXPECT_THAT(Trial([](CrashDisk& disk) { disk.forget_folder_syncs(); }).violations(),
              Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace lockstep::checkpoint
