// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/input_file.h"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep {
namespace {

using test::error_of;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& path) {
  return error_of<DataError>([&] { InputFile{path}; });
}

TEST(InputFile, ReadsAnyPart) {
  const test::TemporaryFolder folder;
  InputFile file(folder.write("a", "0123456789"));
  EXPECT_EQ(file.size(), 10U);
  InputFile moved = std::move(file);
  std::string text(4, ' ');
  moved.read(3, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "3456");
  moved.read(10, {});
  EXPECT_EQ(read_text(folder.path("a"), 10), "0123456789");
  EXPECT_EQ(read_text(folder.write("empty", ""), 0), "");
}

TEST(InputFile, RefusesWhatIsNoFile) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal_of(folder.path("none")), EndsWith("none: No such file or directory"));
  EXPECT_THAT(refusal_of(folder.path("")), EndsWith("it is not a regular file"));
  std::filesystem::create_symlink(folder.write("a", "x"), folder.path("link"));
  EXPECT_THAT(refusal_of(folder.path("link")), EndsWith("it is a symbolic link"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal_of(folder.path("pipe")), EndsWith("it is not a regular file"));
}

TEST(InputFile, AFileThatBecomesShorterIsAnError) {
  const test::TemporaryFolder folder;
  const InputFile file(folder.write("a", "0123456789"));
  std::filesystem::resize_file(folder.path("a"), 5);
  std::string text(8, ' ');
  EXPECT_THAT(error_of<DataError>([&] { file.read(2, std::as_writable_bytes(std::span(text))); }),
              HasSubstr("at byte 5: the file ends here"));
}

TEST(ReadText, RefusesMoreThanItsLimit) {
  const test::TemporaryFolder folder;
  folder.write("a", "0123456789");
  EXPECT_THAT(error_of<DataError>([&] { read_text(folder.path("a"), 9); }),
              HasSubstr("10 bytes are more than the 9"));
}

}  // namespace
}  // namespace lockstep
