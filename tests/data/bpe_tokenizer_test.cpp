// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/bpe_trainer.h"
#include "lockstep/data/tokenizer/hugging_face.h"

#include "tests/data/texts.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

BpeModel trained(const char* pattern) {
  WordCounts counts;
  count_words(
      SplitterChain({pattern}),
      "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
      "darkness was upon the face of the deep. L'été des Кириллица 漢字 漢字 2024 2024.",
      counts);
  return train_bpe(counts, 320, pattern);
}

RC_GTEST_PROP(BpeTokenizer, RoundTripIsTheIdentity, ()) {
  static const BpeTokenizer gpt2(trained(kGpt2Pattern)), llama3(trained(kLlama3Pattern)), bytes(byte_model());
  const std::string text = testing::arbitrary_text();
  for (const Tokenizer* tokenizer : {&gpt2, &llama3, &bytes}) {
    const auto tokens = tokenizer->encode(text);
    RC_ASSERT(tokenizer->decode(tokens) == text);
    for (const Token token : tokens) RC_ASSERT(token < tokenizer->vocab_size());
  }
}

RC_GTEST_PROP(BpeTokenizer, TheCacheChangesNothing, ()) {
  static const BpeTokenizer tokenizer(trained(kLlama3Pattern));
  const auto warm = tokenizer.encoder();
  for (int i = 0; i < 3; ++i) {
    const std::string text = testing::arbitrary_text() + " the beginning of the heaven";
    std::vector<Token> first, second;
    warm->encode(text, first);
    warm->encode(text, second);
    RC_ASSERT(first == tokenizer.encode(text));
    RC_ASSERT(second == first);
  }
}

TEST(BpeTokenizer, UsesItsMerges) {
  const BpeTokenizer tokenizer(trained(kGpt2Pattern));
  const auto tokens = tokenizer.encode(" the");
  ASSERT_EQ(tokens.size(), 1U);
  EXPECT_EQ(tokenizer.model().tokens[tokens[0]], " the");
}

TEST(BpeTokenizer, EveryByteOfABinaryFileHasAToken) {
  const BpeTokenizer tokenizer(byte_model());
  EXPECT_THAT(tokenizer.encode("az\n"), ElementsAre('a', 'z', '\n'));
  EXPECT_EQ(tokenizer.vocab_size(), 257U);
  EXPECT_EQ(tokenizer.end_of_document(), 256U);
}

TEST(BpeTokenizer, AddedTokensAreFoundLongestFirst) {
  BpeModel model = byte_model();
  model.tokens.insert(model.tokens.end(), {"<|x|>", "<|x|>y", "[z]"});
  model.added.insert(model.added.end(), {{257, "<|x|>", true}, {258, "<|x|>y", true}, {259, "[z]", false}});
  const BpeTokenizer tokenizer(model);
  EXPECT_THAT(tokenizer.encode("a<|x|>y<|x|>[z]<|x<|endoftext|>"),
              ElementsAre('a', 258, 257, 259, '<', '|', 'x', 256));
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{258, 'q'}), "<|x|>yq");
  EXPECT_EQ(tokenizer.find("[z]"), 259U);
  EXPECT_EQ(tokenizer.find("none"), std::nullopt);
}

TEST(BpeTokenizer, IgnoringMergesTakesWholeWordsFirst) {
  BpeModel model = byte_model();
  model.tokens.insert(model.tokens.end(), {"ab", "abc"});  // no merge leads to "abc"
  model.merges = {{'a', 'b', 257}};
  model.patterns = {kGpt2Pattern};
  EXPECT_THAT(BpeTokenizer(model).encode("abc"), ElementsAre(257, 'c'));
  model.ignore_merges = true;
  EXPECT_THAT(BpeTokenizer(model).encode("abc"), ElementsAre(258));
}

TEST(BpeTokenizer, ComposesWhenTheModelAsksForIt) {
  BpeModel model = byte_model();
  model.compose = true;
  const BpeTokenizer tokenizer(model);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("e\u0301 a")), "\u00e9 a");
}

TEST(BpeTokenizer, NamesTheBadByteOrToken) {
  const BpeTokenizer tokenizer(byte_model());
  EXPECT_THAT(error_of<DataError>([&] { tokenizer.encode("abc\xFF"); }), HasSubstr("byte 3 of the text"));
  EXPECT_THAT(error_of<DataError>([&] { tokenizer.decode(std::vector<Token>{257}); }),
              HasSubstr("token 257"));
  BpeModel model = byte_model();
  model.tokens[7].clear();
  EXPECT_THAT(error_of<DataError>([&] { BpeTokenizer{model}; }), HasSubstr("no token for the byte 7"));
}

TEST(LoadTokenizer, ReadsFilesFoldersAndTheBuiltInName) {
  test::TemporaryFolder folder;
  const BpeTokenizer made(trained(kGpt2Pattern));
  folder.write("tokenizer.json", made.serialized());
  for (const std::string& name : {folder.path("tokenizer.json"), folder.path("")}) {
    EXPECT_EQ(load_tokenizer(name)->encode("the earth"), made.encode("the earth"));
  }
  EXPECT_EQ(load_tokenizer("bytes")->vocab_size(), 257U);
  EXPECT_THAT(error_of<UsageError>([&] { load_tokenizer(folder.path("none")); }), HasSubstr("No such file"));
}

}  // namespace
}  // namespace lockstep::data
