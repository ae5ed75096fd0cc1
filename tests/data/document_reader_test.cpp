// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/document_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/prepare/document_text.h"
#include "lockstep/data/tokenizer/splitter.h"

#include "tests/data/gzip_of.h"
#include "tests/data/texts.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::gzip_of;
using ::testing::HasSubstr;

std::vector<Piece> read_all(const std::vector<Input>& inputs, const ReaderOptions& options = {}) {
  DocumentReader reader(inputs, options);
  std::vector<Piece> pieces;
  while (auto chunk = reader.next()) {
    for (Piece& piece : chunk->pieces) pieces.push_back(std::move(piece));
  }
  return pieces;
}

// The contents of whole documents.
std::vector<std::string> documents(const std::vector<Piece>& pieces) {
  std::vector<std::string> found;
  bool open = false;
  for (const Piece& piece : pieces) {
    EXPECT_EQ(piece.begins_document, !open);
    if (!open) found.emplace_back();
    found.back() += piece.content;
    open = !piece.ends_document;
  }
  EXPECT_FALSE(open);
  return found;
}

TEST(DocumentReader, AFileOfTextIsADocument) {
  TemporaryFolder folder;
  const std::vector<Input> inputs = {{folder.write("a.txt", "one\ntwo"), InputFormat::text},
                                     {folder.write("empty.txt", ""), InputFormat::text},
                                     {folder.write("b.txt", "three\n"), InputFormat::text}};
  EXPECT_THAT(documents(read_all(inputs)), ElementsAre("one\ntwo", "three\n"));
}

TEST(DocumentReader, LinesCanMakeDocuments) {
  TemporaryFolder folder;
  const std::vector<Input> inputs = {{folder.write("a.txt", "1\n2\n3\n4\n5"), InputFormat::text},
                                     {folder.write("b.txt", "6\n7\n"), InputFormat::text}};
  EXPECT_THAT(documents(read_all(inputs, {.document_lines = 2})),
              ElementsAre("1\n2\n", "3\n4\n", "5", "6\n7\n"));
}

TEST(DocumentReader, LongDocumentsComeInPieces) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::vector<Input> inputs = {{folder.write("a.txt", text), InputFormat::text}};
  const auto pieces = read_all(inputs);
  EXPECT_GT(pieces.size(), 4U);
  std::uint64_t place = 0;
  for (const Piece& piece : pieces) {
    EXPECT_EQ(piece.place, place);
    EXPECT_LE(piece.content.size(), 1U << 20);
    place += piece.content.size();
  }
  EXPECT_EQ(documents(pieces), std::vector<std::string>{text});

  const auto cut = documents(read_all(inputs, {.document_lines = 150000}));
  ASSERT_EQ(cut.size(), 3U);
  EXPECT_EQ(std::count(cut[0].begin(), cut[0].end(), '\n'), 150000);
  EXPECT_EQ(std::count(cut[1].begin(), cut[1].end(), '\n'), 150000);
  EXPECT_EQ(cut[0] + cut[1] + cut[2], text);
}

TEST(DocumentReader, LinesOfJsonAreDocumentsAndBlankOnesAreNot) {
  TemporaryFolder folder;
  const std::string long_line = "{\"text\": \"" + std::string(3 << 20, 'x') + "\"}";
  const std::vector<Input> inputs = {
      {folder.write("a.jsonl", "{\"text\": \"a\\nb\"}\n\n \r\n" + long_line + "\n{\"text\": \"c\"}"),
       InputFormat::jsonl}};
  auto pieces = read_all(inputs);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[1].place, 4U);
  EXPECT_EQ(text_of(pieces[0], "text"), "a\nb");
  EXPECT_EQ(text_of(pieces[1], "text").size(), 3U << 20);
  EXPECT_EQ(text_of(pieces[2], "text"), "c");
}

TEST(DocumentReader, ReadsGzipWhateverTheName) {
  TemporaryFolder folder;
  const std::vector<Input> inputs = {
      {folder.write("a.txt", gzip_of("one") + gzip_of("two")), InputFormat::text}};
  EXPECT_THAT(documents(read_all(inputs)), ElementsAre("onetwo"));
}

TEST(DocumentReader, CorruptGzipIsNamedWithItsOffset) {
  TemporaryFolder folder;
  const std::string whole = gzip_of(std::string(100000, 'a') + "b");
  std::string changed = whole;
  changed[whole.size() - 6] = static_cast<char>(changed[whole.size() - 6] ^ 1);  // in the checksum
  const std::vector<Input> cut = {
      {folder.write("cut.gz", whole.substr(0, whole.size() / 2)), InputFormat::text}};
  const std::vector<Input> bad = {{folder.write("bad.gz", changed), InputFormat::text}};
  EXPECT_THAT(
      error_of<DataError>([&] { read_all(cut); }),
      HasSubstr("cut.gz at byte " + std::to_string(whole.size() / 2) + ": the compressed data is cut off"));
  EXPECT_THAT(error_of<DataError>([&] { read_all(bad); }),
              AllOf(HasSubstr("bad.gz at byte "), HasSubstr(": the compressed data is corrupt")));
}

TEST(DocumentReader, BadTextIsNamedWithItsPlace) {
  TemporaryFolder folder;
  const std::vector<Input> inputs = {
      {folder.write("a.txt", std::string((1 << 20) + 5, 'a') + "\xC3("), InputFormat::text},
      {folder.write("a.jsonl",
                    "{\"text\": \"a\"}\n{\"txt\": \"a\"}\n[1]\n{\"text\": \n{\"text\": \"\xFF\"}\n"
                    "{\"text\": \"a\", \"score\": 1e999}\n"),
       InputFormat::jsonl}};
  const auto pieces = read_all(inputs);
  const auto message = [&](std::size_t index) {
    return error_of<DataError>([&] { text_of(pieces[index], "text"); });
  };
  ASSERT_EQ(pieces.size(), 8U);
  EXPECT_THAT(message(1), HasSubstr("a.txt at byte 1048581: the byte 0xC3 is not valid UTF-8"));
  EXPECT_THAT(message(3), HasSubstr("a.jsonl line 2: no string is under the key 'text'"));
  EXPECT_THAT(message(4), HasSubstr("a.jsonl line 3: no string"));
  EXPECT_THAT(message(5), HasSubstr("a.jsonl line 4: this is not valid JSON from byte 10 of the line on"));
  EXPECT_THAT(message(6), HasSubstr("a.jsonl line 5: this is not valid JSON"));
  EXPECT_THAT(message(7), HasSubstr("a.jsonl line 6: number overflow"));
}

TEST(DocumentReader, ValidationTakesItsShareByContent) {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 4000; ++i) lines += "line " + std::to_string(i % 2000) + "\n";
  const std::vector<Input> inputs = {{folder.write("a.txt", lines), InputFormat::text}};
  const auto pieces = read_all(inputs, {.document_lines = 1, .validation = 0.25});
  ASSERT_EQ(pieces.size(), 4000U);
  int chosen = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(pieces[i].validation, pieces[i + 2000].validation);
    chosen += pieces[i].validation;
  }
  EXPECT_NEAR(chosen, 500, 80);
}

TEST(DocumentReader, ALineBreakAtTheEndOfAFileDoesNotChangeTheSide) {
  TemporaryFolder folder;
  const ReaderOptions half = {.document_lines = 1, .validation = 0.5};
  for (int i = 0; i < 64; ++i) {
    const std::string line = "line " + std::to_string(i);
    const std::vector<Input> inputs = {{folder.write("with.txt", line + "\n"), InputFormat::text},
                                       {folder.write("without.txt", line), InputFormat::text},
                                       {folder.write("other.txt", line + "\r\n"), InputFormat::text}};
    const auto pieces = read_all(inputs, half);
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(pieces[0].validation, pieces[1].validation) << line;
    EXPECT_EQ(pieces[0].validation, pieces[2].validation) << line;
    EXPECT_EQ(pieces[0].validation, chosen_for_validation(line, 0.5)) << line;
  }
}

// Documents of about the length of a piece: of some the last line break is already part of the next one.
TEST(DocumentReader, NorDoesItOfLongDocuments) {
  TemporaryFolder folder;
  for (int i = 0; i < 8; ++i) {
    for (const std::size_t size : {(1U << 20) - 2, (1U << 20) - 1, 1U << 20, (1U << 20) + 1}) {
      const std::string text =
          std::to_string(i) + "\nb" + std::string(size - std::to_string(i).size() - 2, 'c');
      const std::vector<Input> inputs = {{folder.write("with.txt", text + "\n"), InputFormat::text},
                                         {folder.write("without.txt", text), InputFormat::text}};
      for (const Piece& piece : read_all(inputs, {.validation = 0.5})) {
        EXPECT_EQ(piece.validation, chosen_for_validation(text, 0.5)) << i << " of " << size;
      }
    }
  }
}

// Corpora that were prepared before stay divided as they were.
TEST(DocumentReader, TheSideOfALineIsTheOneItAlwaysHad) {
  std::string sides;
  for (int i = 0; i < 32; ++i)
    sides += chosen_for_validation("line " + std::to_string(i) + "\n", 0.5) ? '1' : '0';
  EXPECT_EQ(sides, "10011010101111110110000100011010");
}

// Cutting there and encoding the parts gives the words of the whole.
RC_GTEST_PROP(SafeCut, DoesNotChangeWords, ()) {
  std::string text = testing::arbitrary_text() +
                     *rc::gen::element<std::string>("a\nb", "!\n)", "1\n2", "'\ns") +
                     testing::arbitrary_text();
  const std::size_t cut = safe_cut(text);
  RC_ASSERT(cut >= 1U && cut <= text.size());
  for (const char* pattern : {kGpt2Pattern, kLlama3Pattern, kQwen2Pattern}) {
    const SplitterChain splitter({pattern});
    std::vector<std::size_t> whole, first, second;
    splitter.split(text, whole);
    splitter.split(std::string_view(text).substr(0, cut), first);
    splitter.split(std::string_view(text).substr(cut), second);
    for (std::size_t& end : second) end += cut;
    first.insert(first.end(), second.begin(), second.end());
    RC_ASSERT(first == whole);
  }
}

TEST(SafeCut, NeverCutsACharacter) {
  EXPECT_EQ(safe_cut("ab"), 1U);
  EXPECT_EQ(safe_cut("a"), 1U);
  EXPECT_EQ(safe_cut("x\u6f22\u6f22"), 4U);
  EXPECT_EQ(safe_cut("x\u6f22\xE6\xBC"), 4U);
  EXPECT_EQ(safe_cut("one\ntwo\n\n three"), 4U);
}

}  // namespace
}  // namespace lockstep::data
