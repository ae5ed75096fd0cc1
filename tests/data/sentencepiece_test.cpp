// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/run.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::HasSubstr;

class SentencePiece : public ::testing::Test {
 protected:
  SentencePiece() {
    std::string lines;
    for (int i = 0; i < 50; ++i) lines += "the earth was without form and void " + std::to_string(i) + "\n";
    folder_.write("text.txt", lines);
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        "--input=" + folder_.path("text.txt") + " --model_prefix=" + folder_.path("t") +
        " --vocab_size=300 --model_type=bpe --byte_fallback=true --hard_vocab_limit=false --minloglevel=9");
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  TemporaryFolder folder_;
};

TEST_F(SentencePiece, EncodesAndDecodes) {
  const auto tokenizer = load_sentencepiece(folder_.path("t.model"));
  const std::string text = "the void was 漢 without earth";
  const auto tokens = tokenizer->encode(text);
  EXPECT_LT(tokens.size(), text.size());
  for (const Token token : tokens) EXPECT_LT(token, tokenizer->vocab_size());
  EXPECT_EQ(tokenizer->decode(tokens), text);
  EXPECT_EQ(tokenizer->end_of_document(), tokenizer->find("</s>"));
  EXPECT_EQ(tokenizer->serialized(), folder_.read("t.model"));
}

TEST_F(SentencePiece, RefusesWhatIsNoModel) {
  const std::string path = folder_.write("bad.model", "these are no protocol buffers");
  EXPECT_THAT(error_of<DataError>([&] { load_sentencepiece(path); }), HasSubstr("is no sentencepiece model"));
  const auto tokenizer = load_sentencepiece(folder_.path("t.model"));
  EXPECT_THAT(error_of<DataError>([&] { tokenizer->encode("a\xFF"); }), HasSubstr("byte 1 of the text"));
  EXPECT_THAT(error_of<DataError>([&] { tokenizer->decode(std::vector<Token>{1U << 20}); }),
              HasSubstr("token 1048576"));
}

TEST_F(SentencePiece, PreparesACorpus) {
  const std::string prefix = folder_.path("corpus");
  ASSERT_EQ(cli::run({"prepare", folder_.path("text.txt"), "--tokenizer", folder_.path("t.model"), "--output",
                      prefix, "--document-lines", "10", "--append-eod", "--json"}),
            0);
  const auto tokenizer = load_sentencepiece(prefix + ".tokenizer.model");
  const auto corpus = open_corpus(prefix, {.vocab_size = tokenizer->vocab_size()});
  const std::vector<Token> tokens = testing::all_tokens(*corpus);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), *tokenizer->end_of_document()), 5);
}

}  // namespace
}  // namespace lockstep::data
