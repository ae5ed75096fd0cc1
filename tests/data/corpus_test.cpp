// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/corpus.h"

#include <filesystem>
#include <numeric>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/formats.h"
#include "lockstep/data/corpus/megatron_writer.h"
#include "lockstep/data/sampling/windows.h"

#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using testing::all_tokens;
using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string llmc_file(std::int32_t magic, std::int32_t version, std::int32_t count,
                      const std::string& tokens) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + tokens;
}

void write_megatron(const std::string& prefix, std::vector<Token> tokens) {
  MegatronWriter writer(prefix, TokenType::uint16);
  writer.add(tokens, true);
  writer.finish();
}

TEST(Corpus, ReadsNanoGpt) {
  TemporaryFolder folder;
  folder.write("train.bin", bytes_of<std::uint16_t>({1, 2, 65535}));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("train.bin"), {})), ElementsAre(1, 2, 65535));
}

TEST(Corpus, ReadsBothKindsOfLlmC) {
  TemporaryFolder folder;
  folder.write("gpt2.bin", llmc_file(20240520, 1, 3, bytes_of<std::uint16_t>({7, 8, 50256})));
  folder.write("llama.bin", llmc_file(20240801, 7, 2, bytes_of<std::uint32_t>({128000, 9})));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("gpt2.bin"), {})), ElementsAre(7, 8, 50256));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("llama.bin"), {})), ElementsAre(128000, 9));
}

TEST(Corpus, FindsMegatronPairsByEveryUsualName) {
  TemporaryFolder folder;
  write_megatron(folder.path("kjv"), {4, 5, 6});
  write_megatron(folder.path("web_text_document"), {7});
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("kjv"), {})), ElementsAre(4, 5, 6));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("kjv.bin"), {})), ElementsAre(4, 5, 6));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("kjv.idx"), {})), ElementsAre(4, 5, 6));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("web"), {})), ElementsAre(7));
}

TEST(Corpus, JoinsShardsByName) {
  TemporaryFolder folder;
  folder.write("web_train_000002.bin", bytes_of<std::uint16_t>({3, 4, 5}));
  folder.write("web_train_000001.bin", bytes_of<std::uint16_t>({1, 2}));
  folder.write("web_train_000003.bin", "");
  folder.write("web_val_000001.bin", bytes_of<std::uint16_t>({9}));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path("web_train_*.bin"), {})), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(all_tokens(*open_corpus(folder.path(""), {})), ElementsAre(1, 2, 3, 4, 5, 9));
}

TEST(Corpus, TheTokenizerBesideItIsFoundByEveryNameOfIt) {
  TemporaryFolder folder;
  const std::string tokenizer = folder.write("in/kjv.tokenizer.json", "{}");
  write_megatron(folder.path("in/a"), {1});
  write_megatron(folder.path("in/kjv"), {2});
  write_megatron(folder.path("in/kjv_validation"), {3});
  write_megatron(folder.path("web_text_document"), {4});
  for (const char* name : {"in/kjv", "in/kjv.bin", "in/kjv.idx", "in/*.bin", "in/kjv*", "in", "in/"}) {
    EXPECT_EQ(tokenizer_beside(folder.path(name)), tokenizer) << name;
    EXPECT_GT(open_corpus(folder.path(name), {})->size(), 0U) << name;
  }
  for (const char* name : {"in/a", "in/a.bin", "web", "in/x*.bin", "none", "none/*.bin", "none.bin"}) {
    EXPECT_EQ(tokenizer_beside(folder.path(name)), std::nullopt) << name;
  }
  const std::string other = folder.write("web_text_document.tokenizer.json", "{}");
  for (const char* name : {"web", "web_text_document", "web_text_document.idx"}) {
    EXPECT_EQ(tokenizer_beside(folder.path(name)), other) << name;
  }
}

TEST(Corpus, ReadsAcrossShardsAtAnyPlace) {
  TemporaryFolder folder;
  std::vector<Token> expected;
  for (int shard = 0; shard < 5; ++shard) {
    std::vector<std::uint16_t> tokens(static_cast<std::size_t>(shard * 3 % 4));
    std::iota(tokens.begin(), tokens.end(), static_cast<std::uint16_t>(expected.size()));
    expected.insert(expected.end(), tokens.begin(), tokens.end());
    folder.write(std::to_string(shard) + ".bin", bytes_of(tokens));
  }
  const auto source = open_corpus(folder.path("*.bin"), {});
  ASSERT_EQ(source->size(), expected.size());
  for (std::size_t begin = 0; begin <= expected.size(); ++begin) {
    for (std::size_t end = begin; end <= expected.size(); ++end) {
      std::vector<Token> tokens(end - begin);
      source->copy(begin, tokens);
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), expected.begin() + static_cast<long>(begin)));
    }
  }
}

TEST(Corpus, MissingFilesAreTheUsersMistake) {
  TemporaryFolder folder;
  EXPECT_THAT(error_of<UsageError>([&] { open_corpus(folder.path("none"), {}); }),
              HasSubstr("there is no corpus"));
  EXPECT_THAT(error_of<UsageError>([&] { open_corpus(folder.path("a*.bin"), {}); }),
              HasSubstr("no .bin file"));
  EXPECT_THAT(error_of<UsageError>([&] { open_corpus(folder.path("x/*.bin"), {}); }),
              HasSubstr("No such file"));
  folder.write("notes.txt", "hello");
  EXPECT_THAT(error_of<UsageError>([&] { open_corpus(folder.path("notes.txt"), {}); }),
              HasSubstr("is no corpus"));
}

TEST(Corpus, FilesThatCannotBeLookedAtAreNotTakenForMissing) {
  TemporaryFolder folder;
  for (const char* name : {"loop", "index.idx", "old_text_document.idx"}) {
    std::filesystem::create_symlink(name, folder.path(name));
  }
  for (const auto& [path, place] :
       {std::pair{"loop", "loop"}, {"index", "index.idx"}, {"old", "old_text_document.idx"}}) {
    EXPECT_EQ(error_of<UsageError>([&] { open_corpus(folder.path(path), {}); }),
              "cannot look for the corpus " + folder.path(path) + ": " + folder.path(place) +
                  ": Too many levels of symbolic links");
  }
}

TEST(Corpus, RefusesTokensBeyondTheVocabularyWhenOpened) {
  TemporaryFolder folder;
  const std::string path = folder.write("train.bin", bytes_of<std::uint16_t>({1, 2, 3, 400, 5}));
  EXPECT_EQ(error_of<DataError>([&] { open_corpus(path, {.vocab_size = 300}); }),
            path + " at byte 6: token 400 is not below the vocabulary of 300");
}

TEST(Corpus, RefusesTokensBeyondTheVocabularyWhenRead) {
  TemporaryFolder folder;
  const std::string path = folder.write("train.bin", bytes_of<std::uint16_t>({1, 2, 3, 400, 5}));
  const auto source = open_corpus(path, {.vocab_size = 300, .verified_tokens = 3});
  std::vector<Token> tokens(2);
  source->copy(1, tokens);
  EXPECT_THAT(tokens, ElementsAre(2, 3));
  EXPECT_EQ(error_of<DataError>([&] { source->copy(2, tokens); }),
            path + " at byte 6: token 400 is not below the vocabulary of 300");
}

TEST(Corpus, ThatBecomesShorterIsNoticed) {
  TemporaryFolder folder;
  const std::string path = folder.write("train.bin", std::string(100'000, '\1'));
  const auto source = open_corpus(path, {});
  std::filesystem::resize_file(path, 4096);
  std::vector<Token> tokens(2);
  EXPECT_EQ(error_of<DataError>([&] { source->copy(40'000, tokens); }),
            path + " at byte 4096: the file ends here since it was opened, when it had 100000 bytes");
}

TEST(Windows, EveryTokenButTheFirstAndTheLastFewIsATargetOnce) {
  TemporaryFolder folder;
  folder.write("train.bin", bytes_of<std::uint16_t>({0, 1, 2, 3, 4, 5, 6, 7}));
  const std::shared_ptr<TokenSource> source = open_corpus(folder.path("train.bin"), {});
  const Windows windows(source, 3);
  ASSERT_EQ(windows.count(), 2U);
  std::vector<Token> tokens(4);
  windows.read(0, tokens);
  EXPECT_THAT(tokens, ElementsAre(0, 1, 2, 3));
  windows.read(1, tokens);
  EXPECT_THAT(tokens, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(Windows(source, 7).count(), 1U);
  EXPECT_EQ(Windows(source, 8).count(), 0U);
}

}  // namespace
}  // namespace lockstep::data
