// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file_lock.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep {
namespace {

class FileLockTest : public ::testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "lock").string(); }

  test::TemporaryFolder folder_;
};

TEST_F(FileLockTest, OnlyOneHoldsIt) {
  std::optional<FileLock> lock(path());
  EXPECT_THAT(test::error_of<InUseError>([&] { FileLock second(path()); }),
              ::testing::StartsWith("process " + std::to_string(::getpid()) + " on "));
  lock.reset();
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_NO_THROW(FileLock again(path()));
}

TEST_F(FileLockTest, AFileThatAKilledProcessLeftLocksNothing) {
  std::ofstream(path()) << "process 1 on elsewhere\n";
  EXPECT_NO_THROW(FileLock lock(path()));
}

TEST_F(FileLockTest, TheFolderMustBeThere) {
  EXPECT_THAT(test::error_of<UsageError>([&] { FileLock lock(path() + "/lock"); }),
              ::testing::HasSubstr("cannot write"));
}

}  // namespace
}  // namespace lockstep
