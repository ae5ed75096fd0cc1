// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/byte_stream.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/error.h"

#include "tests/data/gzip_of.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::gzip_of;
using ::testing::HasSubstr;

// Through a buffer of this size.
std::string read_all(const std::string& path, std::size_t bytes) {
  ByteStream stream(path);
  std::string all;
  std::vector<char> buffer(bytes);
  for (std::size_t got = bytes; got == bytes;) {
    got = stream.read(buffer);
    all.append(buffer.data(), got);
  }
  EXPECT_EQ(stream.read(buffer), 0U) << "behind the end";
  return all;
}

TEST(ByteStream, IsTheFileOrWhatItsMembersHold) {
  TemporaryFolder folder;
  std::string large;
  for (std::uint64_t i = 0; large.size() < (std::size_t{1} << 20); ++i) large += std::to_string(i * i) + "\n";
  for (const std::string& content : {std::string(), std::string("\x1f"), std::string("\x1f text"), large}) {
    const std::string plain = folder.write("plain", content);
    const std::string gzip = folder.write("gzip", gzip_of(content));
    const std::string members = folder.write("members", gzip_of(content) + gzip_of("") + gzip_of("end"));
    const std::string padded = folder.write("padded", gzip_of(content) + std::string(700, '\0'));
    for (const std::size_t bytes : {std::size_t{7}, std::size_t{1} << 18, std::size_t{3} << 20}) {
      EXPECT_TRUE(read_all(plain, bytes) == content) << content.size() << " by " << bytes;
      EXPECT_TRUE(read_all(gzip, bytes) == content) << content.size() << " by " << bytes;
      EXPECT_TRUE(read_all(members, bytes) == content + "end") << content.size() << " by " << bytes;
      EXPECT_TRUE(read_all(padded, bytes) == content) << content.size() << " by " << bytes;
    }
  }
}

TEST(ByteStream, CompressedDataThatEndsAnywhereIsCutOff) {
  TemporaryFolder folder;
  const std::string whole = gzip_of("In the beginning");
  for (std::size_t bytes = 2; bytes < whole.size(); ++bytes) {
    const std::string path = folder.write("cut", whole.substr(0, bytes));
    EXPECT_THAT(error_of<DataError>([&] { read_all(path, 100); }),
                HasSubstr("cut at byte " + std::to_string(bytes) + ": the compressed data is cut off"));
  }
}

TEST(ByteStream, WhatFollowsCompressedDataAndIsNotIsRefused) {
  TemporaryFolder folder;
  const std::string gzip = gzip_of("In the beginning");
  for (const std::string& zeros : {std::string(), std::string(300, '\0'), std::string(600'000, '\0')}) {
    const std::string path = folder.write("more", gzip + zeros + "junk");
    EXPECT_THAT(error_of<DataError>([&] { read_all(path, 100); }),
                HasSubstr("more at byte " + std::to_string(gzip.size() + zeros.size()) +
                          ": something that is not compressed follows"));
  }
}

TEST(ByteStream, AsksBeforeEachPartAndWhileAPipeHasNothing) {
  TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::ofstream writer;
  std::jthread opening([&] { writer.open(path); });
  int asked = 0;
  ByteStream stream(path, [&] {
    ++asked;
    if (asked == 3) writer << "two" << std::flush;
    if (asked == 5) throw std::runtime_error("enough");
  });
  opening.join();
  writer << "one " << std::flush;
  std::array<char, 7> both{};
  EXPECT_EQ(stream.read(both), both.size());
  EXPECT_EQ(std::string(both.data(), both.size()), "one two");
  EXPECT_EQ(asked, 3) << "before each part, and once while there was none";
  std::array<char, 1> more{};
  EXPECT_EQ(error_of<std::runtime_error>([&] { stream.read(more); }), "enough");
}

TEST(ByteStream, AsksWhileAPipeHasNoWriter) {
  TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::array<char, 1> more{};
  int asked = 0;
  ByteStream stream(path, [&] {
    if (++asked == 2) throw std::runtime_error("enough");
  });
  EXPECT_EQ(error_of<std::runtime_error>([&] { stream.read(more); }), "enough");
}

}  // namespace
}  // namespace lockstep::data
