// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/disk.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RealDisk : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  Disk& disk_ = real_disk();
};

TEST_F(RealDisk, WritesOneBlockBehindTheOther) {
  const std::string path = folder_.write("a", "a longer file that was there before");
  const auto file = disk_.create(path);
  std::string expected;
  for (const std::size_t size : {1UL, 3UL, 20UL << 20, 50UL << 20, 5UL}) {
    const std::string block(size, static_cast<char>('a' + size % 26));
    file->write(std::as_bytes(std::span(block)));
    expected += block;
  }
  file->sync();
  EXPECT_TRUE(folder_.read("a") == expected);
}

TEST_F(RealDisk, RenamesAndRemoves) {
  disk_.make_folder(folder_.path("a/b"));
  disk_.make_folder(folder_.path("a/b"));
  write_synced(disk_, folder_.path("a/b/file"), "text");
  disk_.rename(folder_.path("a"), folder_.path("c"));
  disk_.sync_folder(folder_.path("c"));
  EXPECT_EQ(folder_.read("c/b/file"), "text");
  disk_.remove_all(folder_.path("c/b/file"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("c/b")));
  disk_.remove_all(folder_.path("c"));
  disk_.remove_all(folder_.path("c"));
  EXPECT_THAT(folder_.names(), UnorderedElementsAre());
}

TEST_F(RealDisk, ReplacesAFileAndLeavesNothingElse) {
  for (const char* text : {"first", "", "second"}) {
    replace_file(disk_, folder_.path("latest"), text);
    EXPECT_EQ(folder_.read("latest"), text);
  }
  EXPECT_THAT(folder_.names(), UnorderedElementsAre("latest"));
}

TEST_F(RealDisk, NamesThePathAndTheReason) {
  const std::string missing = folder_.path("none/file");
  EXPECT_THAT(error_of<UsageError>([&] { disk_.create(missing); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(error_of<UsageError>([&] { disk_.rename(missing, missing + "2"); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(error_of<UsageError>([&] { disk_.sync_folder(missing); }),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  const std::string file = folder_.write("file", "x");
  EXPECT_THAT(error_of<UsageError>([&] { disk_.make_folder(file + "/folder"); }),
              AllOf(HasSubstr(file), HasSubstr("Not a directory")));
  std::filesystem::create_symlink(file, folder_.path("link"));
  EXPECT_THAT(error_of<UsageError>([&] { disk_.create(folder_.path("link")); }), HasSubstr("link"));
}

TEST_F(RealDisk, AFullOneIsNamed) {
  const auto file = disk_.create("/dev/full");
  const std::string text(100, 'x');
  EXPECT_THAT(error_of<UsageError>([&] { file->write(std::as_bytes(std::span(text))); }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left on device")));
}

}  // namespace
}  // namespace lockstep
