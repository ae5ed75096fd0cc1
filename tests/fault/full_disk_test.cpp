// SPDX-License-Identifier: Apache-2.0
//
// A disk of 8 MiB that is full sooner or later while a checkpoint is written. Needs root.
#include <fstream>

#include <sched.h>
#include <sys/mount.h>

#include "lockstep/base/error.h"

#include "tests/fault/broken_writer.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kPageBytes = 4096;

// The store's folder as a file system of its own, seen by this process and its children only: it goes with
// them, however they end.
class SmallDisk : public BrokenWriter {
 protected:
  explicit SmallDisk(int rows) : BrokenWriter(rows) {
    std::filesystem::create_directories(store());
    LOCKSTEP_CHECK(::unshare(CLONE_NEWNS) == 0 &&
                       ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       ::mount("tmpfs", store().c_str(), "tmpfs", 0, "size=8m") == 0,
                   "cannot mount a tmpfs; this needs root");
    copy_old_one();
  }
  ~SmallDisk() override { ::umount2(store().c_str(), MNT_DETACH); }

  void copy_old_one() const {
    for (const auto& entry : std::filesystem::directory_iterator(store())) {
      std::filesystem::remove_all(entry.path());
    }
    std::filesystem::copy(folder_.path("good"), store(), std::filesystem::copy_options::recursive);
  }
  // Leaves so many pages; the file that takes the others is not of the store.
  void fill_up_to(std::uintmax_t free_pages) const {
    const auto free = std::filesystem::space(store()).available / kPageBytes;
    LOCKSTEP_CHECK(free >= free_pages);
    std::ofstream(filler(), std::ios::binary) << std::string((free - free_pages) * kPageBytes, 'x');
  }
  std::string filler() const { return store() + "/filler"; }
  Finished save(int step) const { return run_program(arguments(store(), step, kNew)); }

  void expect_failure(const Finished& finished) const {
    EXPECT_EQ(finished.exit_code, 1);
    EXPECT_THAT(finished.error_output, HasSubstr("No space left on device"));
    EXPECT_EQ(newest(), kOld);
    EXPECT_THAT(names(), ::testing::IsSubsetOf({"step-10", "latest", "latest.new", "filler"}));
  }
};

// 5 MiB beside as many.
class LargeOnSmallDisk : public SmallDisk {
 protected:
  LargeOnSmallDisk() : SmallDisk(640) {}
};

TEST_F(LargeOnSmallDisk, ASecondCheckpointThatDoesNotFitLeavesTheFirst) {
  for (const int step : {20, kOldStep}) {
    expect_failure(save(step));
    // The room that it had taken is free again.
    EXPECT_GT(std::filesystem::space(store()).available, std::uintmax_t{2} << 20U);
  }
}

// 48 KiB, so that every page can be the one that is not there.
class PageByPage : public SmallDisk {
 protected:
  PageByPage() : SmallDisk(6) {}
};

TEST_F(PageByPage, WhereverTheDiskIsFullTheOldOneStays) {
  for (const int step : {20, kOldStep}) {
    int failures = 0;
    for (std::uintmax_t pages = 0;; ++pages) {
      SCOPED_TRACE(fmt::format("step {} with {} pages left", step, pages));
      copy_old_one();
      fill_up_to(pages);
      const Finished finished = save(step);
      std::filesystem::remove(filler());
      if (finished.exit_code == 0) {
        EXPECT_EQ(newest(), kNew);
        if (finished.error_output.empty()) break;
        EXPECT_THAT(finished.error_output, HasSubstr("No space left on device"));
      } else {
        expect_failure(finished);
        ++failures;
      }
      expect_a_later_save();
    }
    // One for each page of the values, at least.
    EXPECT_GE(failures, 12);
  }
}

}  // namespace
}  // namespace lockstep::testing
