// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/async_file.h"

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::train {
namespace {

using Means = AsyncFile::Means;

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>((i * 31 + seed * 7 + i / 251) & 0xFF);
  return data;
}

class AsyncFileTest : public ::testing::TestWithParam<Means> {};
INSTANTIATE_TEST_SUITE_P(Means, AsyncFileTest, ::testing::Values(Means::io_uring, Means::thread),
                         [](const auto& means) { return std::string(name_of(means.param)); });

TEST_P(AsyncFileTest, GivesBackWhatItWasGiven) {
  const test::TemporaryFolder folder;
  constexpr std::size_t kPieces = 200;  // more than are under way at a time
  constexpr std::size_t kBytes = 70'001;
  AsyncFile file(folder.path().string(), kPieces * kBytes, GetParam());
  EXPECT_EQ(file.means(), GetParam());
  std::vector<std::vector<std::byte>> written;
  std::vector<AsyncFile::Ticket> tickets;
  for (std::size_t i = 0; i < kPieces; ++i) {
    written.push_back(pattern(kBytes, i));
    tickets.push_back(file.write(i * kBytes, written.back()));
  }
  for (const AsyncFile::Ticket ticket : tickets) file.wait(ticket);
  std::vector<std::vector<std::byte>> read(kPieces, std::vector<std::byte>(kBytes));
  tickets.clear();
  for (std::size_t i = 0; i < kPieces; ++i) tickets.push_back(file.read(i * kBytes, read[i]));
  for (std::size_t i = kPieces; i-- > 0;) file.wait(tickets[i]);
  EXPECT_EQ(read, written);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path().string())) << "it has no name";
}

TEST_P(AsyncFileTest, ReadingBeyondTheEndIsAnErrorOfTheOneWhoAsked) {
  const test::TemporaryFolder folder;
  AsyncFile file(folder.path().string(), 1000, GetParam());
  std::vector<std::byte> data(600);
  const AsyncFile::Ticket good = file.read(0, data);
  const AsyncFile::Ticket bad = file.read(500, data);
  EXPECT_NO_THROW(file.wait(good));
  EXPECT_EQ(test::error_of<DataError>([&] { file.wait(bad); }),
            "the disk failed to read 100 bytes of a temporary file at 1000: the file ends there");
}

TEST_P(AsyncFileTest, EndsWhatIsUnderWayWhenItGoes) {
  const test::TemporaryFolder folder;
  std::vector<std::byte> data(1 << 20);
  AsyncFile file(folder.path().string(), data.size(), GetParam());
  file.write(0, data);
}

TEST(AsyncFileErrors, AreOneSentence) {
  EXPECT_EQ(test::error_of<UsageError>([] { AsyncFile("/no/such/folder", 10); }),
            "cannot make a temporary file in /no/such/folder: No such file or directory");
  const test::TemporaryFolder folder;
  const std::string full =
      test::error_of<UsageError>([&] { AsyncFile(folder.path().string(), std::uint64_t{1} << 60); });
  EXPECT_TRUE(
      full.starts_with("cannot take 1152921504606846976 bytes on the disk of " + folder.path().string()))
      << full;
}

}  // namespace
}  // namespace lockstep::train
