// SPDX-License-Identifier: Apache-2.0
//
// A writer of checkpoints that is killed at every system call that touches files, and one for which every
// such call fails: nothing of ours takes part in it but the program that is broken. Needs strace.
#include <string>

#include "tests/fault/broken_writer.h"

namespace lockstep::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRows = 4;

// Every call of those that change files; of the many others some, unless this is the slow test.
constexpr int kStride = LOCKSTEP_STRIDE;
int stride_of(const std::string& syscall) {
  return syscall == "openat" || syscall == "close" || syscall == "pread64" ? kStride : 1;
}

class CheckpointSyscall : public BrokenWriter, public ::testing::WithParamInterface<std::string> {
 protected:
  explicit CheckpointSyscall(int rows = kRows) : BrokenWriter(rows) {}

  static const std::string& syscall() { return GetParam(); }

  Finished trace(const std::string& options, const std::vector<std::string>& words) const {
    return run_shell(fmt::format("exec strace -f -qq -o '{}' -e trace={} {} \"$LOCKSTEP\" {}",
                                 folder_.path("trace"), syscall(), options, fmt::join(words, " ")));
  }
  // How often it is called before main() is, by the loader.
  int calls_of_loader() const {
    EXPECT_EQ(trace("", {}).exit_code, 2);
    return static_cast<int>(lines_in(folder_.read("trace")));
  }

  // Saves over and over, with the fault at one call later each time, until it is not met any more. `is_met`
  // checks what is left and says whether it was.
  template <typename IsMet>
  void sweep(const std::string& fault, const IsMet& is_met) const {
    const int before = calls_of_loader();
    for (const int step : {20, kOldStep}) {
      for (int call = before + 1;; call += stride_of(syscall())) {
        SCOPED_TRACE(fmt::format("step {}, {} number {}", step, syscall(), call));
        begin_anew();
        const std::string inject = fmt::format("-e inject={}:{}:when={}", syscall(), fault, call);
        if (!is_met(trace(inject, arguments(store(), step, kNew)))) {
          EXPECT_GT(call, before + 1) << "the writer never does this";
          break;
        }
      }
    }
  }
};

TEST_P(CheckpointSyscall, KilledAtEachLeavesTheOldOneOrTheNewOne) {
  sweep("signal=SIGKILL", [&](const Finished& finished) {
    EXPECT_THAT(finished.exit_code, AnyOf(0, kKilled)) << finished.error_output;
    EXPECT_THAT(newest(), AnyOf(finished.exit_code == 0 ? kNew : kOld, kNew));
    expect_a_later_save();
    return finished.exit_code != 0;
  });
}

class FailingSyscall : public CheckpointSyscall {
 protected:
  void sweep_error(const std::string& error, const std::string& sentence) const {
    sweep("error=" + error, [&](const Finished& finished) {
      EXPECT_THAT(finished.exit_code, AnyOf(0, 1)) << finished.error_output;
      EXPECT_EQ(newest(), finished.exit_code == 0 ? kNew : kOld);
      EXPECT_THAT(names(), ::testing::Each(Not(HasSubstr("partial"))));
      if (finished.exit_code != 0) {
        EXPECT_THAT(finished.error_output, HasSubstr(sentence));
      }
      return folder_.read("trace").find("(INJECTED)") != std::string::npos;
    });
  }
};

class BrokenSyscall : public FailingSyscall {};

TEST_P(BrokenSyscall, LeavesTheOldOneAndIsTold) {
  sweep_error("EIO", "Input/output error");
}

class FullSyscall : public FailingSyscall {};

TEST_P(FullSyscall, LeavesTheOldOneAndIsTold) {
  sweep_error("ENOSPC", "No space left on device");
}

class QuotaSyscall : public FailingSyscall {};

TEST_P(QuotaSyscall, LeavesTheOldOneAndIsTold) {
  sweep_error("EDQUOT", "Disk quota exceeded");
}

// A disk with errors is mounted again for reading only.
class ReadOnlySyscall : public FailingSyscall {};

TEST_P(ReadOnlySyscall, LeavesTheOldOneAndIsTold) {
  sweep_error("EROFS", "Read-only file system");
}

// Files of 49 MiB, which are waited for in windows of 16 MiB.
class LargeFile : public CheckpointSyscall {
 protected:
  LargeFile() : CheckpointSyscall(12'500) {}
};

// The first windows only have to begin; of what a wait has found the sync would not know.
TEST_P(LargeFile, IsWaitedForBeforeTheSync) {
  begin_anew();
  const Finished good = trace("", arguments(store(), 20, kNew));
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  const std::string calls = folder_.read("trace");
  EXPECT_EQ(lines_in(calls), 2U * (3 + 1)) << calls;
  EXPECT_THAT(calls, HasSubstr("WAIT"));

  begin_anew();
  const Finished failed = trace("-e inject=sync_file_range:error=EIO", arguments(store(), 20, kNew));
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.error_output, HasSubstr("Input/output error"));
  EXPECT_EQ(lines_in(folder_.read("trace")), 3U + 1);
  EXPECT_EQ(newest(), kOld);
}

const auto kName = [](const auto& test) { return test.param; };

INSTANTIATE_TEST_SUITE_P(All, CheckpointSyscall,
                         ::testing::Values("write", "fsync", "fdatasync", "rename", "openat", "mkdir",
                                           "unlink", "unlinkat", "rmdir", "close"),
                         kName);
INSTANTIATE_TEST_SUITE_P(All, BrokenSyscall,
                         ::testing::Values("write", "fsync", "fdatasync", "rename", "openat", "mkdir",
                                           "unlink", "unlinkat", "rmdir", "pread64"),
                         kName);
INSTANTIATE_TEST_SUITE_P(All, LargeFile, ::testing::Values("sync_file_range"), kName);
INSTANTIATE_TEST_SUITE_P(All, QuotaSyscall, ::testing::Values("write", "mkdir"), kName);
INSTANTIATE_TEST_SUITE_P(All, ReadOnlySyscall, ::testing::Values("rename", "openat", "mkdir"), kName);
INSTANTIATE_TEST_SUITE_P(All, FullSyscall,
                         ::testing::Values("write", "fsync", "fdatasync", "rename", "openat", "mkdir"),
                         kName);

}  // namespace
}  // namespace lockstep::testing
