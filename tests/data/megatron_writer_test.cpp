// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/megatron_writer.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/formats.h"
#include "lockstep/data/corpus/megatron_index.h"

#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::TemporaryFolder;
using testing::all_tokens;
using ::testing::UnorderedElementsAre;

// The bytes that Megatron's own builder writes for two documents, the first of two sequences.
TEST(MegatronWriter, WritesTheFormatByteForByte) {
  TemporaryFolder folder;
  MegatronWriter writer(folder.path("c"), TokenType::uint16);
  writer.add(std::vector<Token>{1, 2, 3}, false);
  writer.add(std::vector<Token>{4}, true);
  writer.add(std::vector<Token>{5, 600}, true);
  writer.finish();
  using namespace std::string_literals;
  EXPECT_EQ(folder.read("c.bin"), "\1\0\2\0\3\0\4\0\5\0\x58\2"s);
  EXPECT_EQ(folder.read("c.idx"),
            "MMIDIDX\0\0"
            "\1\0\0\0\0\0\0\0"
            "\x08"
            "\3\0\0\0\0\0\0\0"
            "\3\0\0\0\0\0\0\0"
            "\3\0\0\0\1\0\0\0\2\0\0\0"
            "\0\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0"
            "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s);
  EXPECT_THAT(folder.names(), UnorderedElementsAre("c.bin", "c.idx"));
}

void write_and_read(TokenType type, const std::vector<std::vector<Token>>& documents) {
  TemporaryFolder folder;
  MegatronWriter writer(folder.path("c"), type);
  std::vector<Token> expected;
  for (const auto& document : documents) {
    expected.insert(expected.end(), document.begin(), document.end());
    writer.add(document, true);
  }
  writer.finish();
  EXPECT_EQ(all_tokens(*open_megatron(folder.path("c"), 60000)), expected);
  const MegatronIndex index(folder.path("c.idx"));
  ASSERT_EQ(index.documents(), documents.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    EXPECT_EQ(index.document(i), (Range{at, at + documents[i].size()}));
    at += documents[i].size();
  }
}

// Enough tokens to go through the writer's buffer several times, with empty documents among them.
TEST(MegatronWriter, ReadersGetBackWhatWasWritten) {
  std::mt19937 random(1);
  std::vector<std::vector<Token>> documents(100);
  for (auto& document : documents) {
    document.resize(random() % 4 == 0 ? 0 : random() % 20000);
    for (Token& token : document) token = static_cast<Token>(random() % 60000);
  }
  documents.emplace_back(700000, 9);
  write_and_read(TokenType::uint16, documents);
  write_and_read(TokenType::int32, documents);
}

TEST(MegatronWriter, GoesOnFromItsMark) {
  TemporaryFolder folder;
  MegatronWriter::Mark mark;
  {
    MegatronWriter writer(folder.path("c"), TokenType::uint16);
    writer.add(std::vector<Token>{1, 2}, true);
    writer.save();
    mark = writer.mark();
    writer.add(std::vector<Token>{99, 99, 99}, true);
    writer.save();
  }
  MegatronWriter writer(folder.path("c"), TokenType::uint16, mark);
  writer.add(std::vector<Token>{3}, true);
  writer.finish();
  EXPECT_EQ(all_tokens(*open_megatron(folder.path("c"), 100)), (std::vector<Token>{1, 2, 3}));
  EXPECT_EQ(MegatronIndex(folder.path("c.idx")).documents(), 2U);
}

TEST(MegatronWriter, RefusesToGoOnFromLostFiles) {
  TemporaryFolder folder;
  EXPECT_THROW(
      MegatronWriter(folder.path("c"), TokenType::uint16, {.sequences = 1, .documents = 1, .tokens = 5}),
      UsageError);
  folder.write("c.bin.partial", "1234");
  folder.write("c.idx.partial", "12345678");
  EXPECT_THROW(
      MegatronWriter(folder.path("c"), TokenType::uint16, {.sequences = 1, .documents = 1, .tokens = 5}),
      UsageError);
}

TEST(MegatronWriter, NothingIsVisibleBeforeTheEnd) {
  TemporaryFolder folder;
  MegatronWriter writer(folder.path("c"), TokenType::uint16);
  writer.add(std::vector<Token>{1, 2}, true);
  writer.save();
  EXPECT_THAT(folder.names(), UnorderedElementsAre("c.bin.partial", "c.idx.partial"));
}

TEST(MegatronWriter, AnEmptyCorpusIsValid) {
  TemporaryFolder folder;
  MegatronWriter(folder.path("c"), TokenType::int32).finish();
  EXPECT_EQ(open_megatron(folder.path("c"), 10)->size(), 0U);
}

TEST(MegatronWriter, SaysWhyItCannotWrite) {
  EXPECT_NE(test::error_of<UsageError>([] {
              MegatronWriter("/no/such/folder/c", TokenType::uint16);
            }).find("cannot write /no/such/folder/c.bin.partial: No such file"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::data
