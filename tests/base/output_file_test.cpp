// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/output_file.h"

#include <array>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_file;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(OutputFile, SaysThatAFileIsShorterThanWhatIsToBeKept) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("log", "12345");
  EXPECT_EQ(error_of<UsageError>([&] { OutputFile(path, 6); }),
            "cannot continue " + path + ": it has fewer than 6 bytes");
}

TEST(OutputFile, SaysWhyWhatIsNoFileCannotBeWritten) {
  EXPECT_EQ(error_of<UsageError>([] { OutputFile("/dev/full"); }),
            "cannot write /dev/full: Invalid argument");
}

class WriteAtomically : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

TEST_F(WriteAtomically, KeepsThePermissionsOfAFileThatIsThere) {
  const std::string path = folder_.path("file");
  write_atomically(path, "before");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_atomically(path, "after");
  EXPECT_EQ(read_file(path), "after");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WriteAtomically, ReplacesTheTargetOfALinkWhetherItIsThereOrNot) {
  fs::create_symlink("second", folder_.path("first"));
  fs::create_symlink(folder_.path("file"), folder_.path("second"));
  for (const std::string content : {"new", "newer"}) {
    write_atomically(folder_.path("first"), content);
    EXPECT_EQ(read_file(folder_.path("file")), content);
    EXPECT_TRUE(fs::is_symlink(folder_.path("first")));
    EXPECT_TRUE(fs::is_symlink(folder_.path("second")));
  }
}

TEST_F(WriteAtomically, WritesToWhatIsNoFile) {
  const std::string path = folder_.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_atomically(path, "hello");
  std::array<char, 5> read{};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 5);
  ::close(reader);
  EXPECT_EQ(std::string(read.data(), read.size()), "hello");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(WriteAtomically, NamesTheFileThatWasAskedFor) {
  EXPECT_THAT(error_of<UsageError>([&] { write_atomically(folder_.path("no/file"), "x"); }),
              AllOf(HasSubstr("no/file: No such file"), Not(HasSubstr("partial"))));
}

TEST_F(WriteAtomically, LeavesNothingElse) {
  write_atomically(folder_.path("file"), "x");
  EXPECT_THROW(write_atomically(folder_.path(""), "x"), UsageError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path("")), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace lockstep
