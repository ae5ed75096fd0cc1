// SPDX-License-Identifier: Apache-2.0
//
// A writer that was given up, and does not know it yet, commits while its successor does: what the successor
// has reported stays, whenever the one comes between two operations of the other.
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/checkpoint/saved.h"
#include "tests/checkpoint/test_disks.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

// Lets something happen before one of its operations, counted from 0.
class InterruptedDisk : public testing::FailingDisk {
 public:
  InterruptedDisk(int when, std::function<void()> what)
      : FailingDisk(1 << 30, false), when_(when), what_(std::move(what)) {}

  bool has_happened() const { return when_ < 0; }

  std::unique_ptr<File> create(const std::string& path) override {
    interrupt();
    return FailingDisk::create(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    interrupt();
    FailingDisk::rename(from, to);
  }
  void sync_folder(const std::string& path) override {
    interrupt();
    FailingDisk::sync_folder(path);
  }
  void remove_all(const std::string& path) override {
    interrupt();
    FailingDisk::remove_all(path);
  }

 protected:
  void write(File& file, ConstBytes bytes) override {
    interrupt();
    FailingDisk::write(file, bytes);
  }
  void sync_file() override {
    interrupt();
    FailingDisk::sync_file();
  }

 private:
  void interrupt() {
    if (when_ >= 0 && when_-- == 0) what_();
  }

  int when_;
  std::function<void()> what_;
};

std::vector<testing::FullTensor> tensors(int writer) {
  return {testing::full_tensor("model.a", {2, 4}, writer)};
}

void write_all(CheckpointStore& store, Disk& disk, const std::string& id, int writer) {
  store.begin(30, id);
  testing::write_rank(disk, store.staging_folder(30, id), 0, tensors(writer),
                      testing::uncut(tensors(writer))[0]);
}

class TwoWriters : public ::testing::TestWithParam<bool> {};

TEST_P(TwoWriters, WhatTheSecondHasReportedStays) {
  for (int when = 0;; ++when) {
    const test::TemporaryFolder folder;
    testing::HastyDisk hasty;
    CheckpointStore second(folder.path("s"), hasty);
    if (GetParam())
      testing::save(second, hasty, tensors(0), testing::uncut(tensors(0)),
                    testing::manifest_of(tensors(0), 30), "0");
    write_all(second, hasty, "2", 2);
    InterruptedDisk disk(when, [&] { second.commit("2", testing::manifest_of(tensors(2), 30), 1); });
    CheckpointStore first(folder.path("s"), disk);
    write_all(first, hasty, "1", 1);
    try {
      first.commit("1", testing::manifest_of(tensors(1), 30), 1);
    } catch (const Error&) {
    }
    if (!disk.has_happened()) return;
    const auto listed = CheckpointStore(folder.path("s")).committed();
    ASSERT_FALSE(listed.empty()) << "interrupted at " << when;
    EXPECT_EQ(listed.front().step, 30);
    try {
      Checkpoint(listed.front().path).verify();
    } catch (const Error& error) {
      ADD_FAILURE() << "interrupted at " << when << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(NewOrReplaced, TwoWriters, ::testing::Bool());

}  // namespace
}  // namespace lockstep::checkpoint
