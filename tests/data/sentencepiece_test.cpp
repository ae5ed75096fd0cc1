// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/run.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

#include "tests/data/metaspace_file.h"
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

// The tokens of a model under their names, and the merges that lead to them, the likeliest first: what
// Hugging Face's converter makes of a model.
nlohmann::json converted(const std::string& path) {
  sentencepiece::SentencePieceProcessor model;
  EXPECT_TRUE(model.Load(path).ok());
  std::map<std::string, int> vocabulary;
  for (int id = 0; id < model.GetPieceSize(); ++id) vocabulary[model.IdToPiece(id)] = id;
  std::vector<std::tuple<float, std::size_t, std::string, std::string>> merges;
  for (const auto& [piece, id] : vocabulary) {
    if (model.IsByte(id) || model.IsControl(id) || model.IsUnknown(id)) continue;
    for (std::size_t at = 1; at < piece.size(); ++at) {
      const std::string left = piece.substr(0, at), right = piece.substr(at);
      if (vocabulary.contains(left) && vocabulary.contains(right))
        merges.emplace_back(-model.GetScore(id), right.size(), left, right);
    }
  }
  std::sort(merges.begin(), merges.end());
  nlohmann::json file = testing::metaspace_file();
  file["model"]["vocab"] = vocabulary;
  file["model"]["merges"] = nlohmann::json::array();
  for (const auto& [score, size, left, right] : merges) file["model"]["merges"].push_back({left, right});
  return file;
}

TEST(ConvertedSentencePiece, GivesTheTokensOfTheModel) {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    lines += "And the earth was without form, and void; and darkness was upon the face of the deep. " +
             std::to_string(i) +
             "\nIn  the   beginning God created the heaven and the \u00e9t\u00e9 earth.\n";
  }
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + folder.write("text.txt", lines) + " --model_prefix=" + folder.path("t") +
      " --vocab_size=400 --model_type=bpe --byte_fallback=true --hard_vocab_limit=false --minloglevel=9"
      " --normalization_rule_name=identity --remove_extra_whitespaces=false "
      "--allow_whitespace_only_pieces=true");
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto model = load_sentencepiece(folder.path("t.model"));
  const auto file = load_tokenizer(folder.write("tokenizer.json", converted(folder.path("t.model")).dump()));
  EXPECT_EQ(file->vocab_size(), model->vocab_size());
  EXPECT_EQ(file->end_of_document(), model->end_of_document());
  for (const std::string& text :
       {std::string("In the beginning"), std::string(" the earth"), std::string("the  face   of "),
        std::string("   "), std::string("darkness \u6f22\u5b57 was\nupon\t\u00e9t\u00e9 \U0001F600!"),
        std::string("THE VOID"), lines}) {
    const auto tokens = model->encode(text);
    EXPECT_EQ(file->encode(text), tokens) << text;
    EXPECT_EQ(file->decode(tokens), text);
  }
}

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

// A message of the model's file: its field, as a tag, and its bytes.
std::string field(char tag, const std::string& bytes) {
  return std::string(1, tag) + static_cast<char>(bytes.size()) + bytes;
}

std::string piece(const std::string& text, char type) {
  return field('\x0a', field('\x0a', text) + std::string("\x15\0\0\0\0\x18", 6) + type);
}

// The tree of pieces takes a zero for the end of one, and throws for what has none before it.
TEST_F(SentencePiece, RefusesAPieceThatBeginsWithAZero) {
  const std::string model = piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1) +
                            piece(std::string("\0b", 2), 1) + field('\x12', "\x18\x01\x20\x08") +
                            field('\x1a', field('\x0a', "identity") + "\x18\x01");
  const std::string path = folder_.write("zero.model", model);
  EXPECT_THAT(error_of<DataError>([&] { load_sentencepiece(path); }), HasSubstr("is no sentencepiece model"));
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
