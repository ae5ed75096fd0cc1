// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/hugging_face.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/bpe_tokenizer.h"
#include "lockstep/data/tokenizer/bpe_trainer.h"
#include "lockstep/data/tokenizer/byte_map.h"

#include "tests/support/error_of.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Shaped like the files that GPT-2 models come with: old merges, one ByteLevel.
json gpt2_file() {
  json vocabulary;
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[to_visible(std::string(1, static_cast<char>(byte)))] = byte;
  vocabulary["\u0120t"] = 256;
  vocabulary["he"] = 257;
  vocabulary["\u0120the"] = 258;
  vocabulary["<|endoftext|>"] = 259;
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"added_tokens",
           {{{"id", 259},
             {"content", "<|endoftext|>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", true},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}}},
          {"model",
           {{"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", ""},
            {"fuse_unk", false},
            {"vocab", vocabulary},
            {"merges", {"\u0120 t", "h e", "\u0120t he"}}}}};
}

// Shaped like those of LLaMA 3: pairs, a Split before ByteLevel, special tokens outside of the vocabulary.
json llama3_file() {
  json file = gpt2_file();
  file["model"]["type"] = "BPE";
  file["model"]["ignore_merges"] = true;
  file["model"]["byte_fallback"] = false;
  file["model"]["merges"] = json::array({{"\u0120", "t"}, {"h", "e"}, {"\u0120t", "he"}});
  file["model"]["vocab"].erase("<|endoftext|>");
  file["added_tokens"][0]["content"] = "<|end_of_text|>";
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"},
         {"pattern", {{"Regex", kLlama3Pattern}}},
         {"behavior", "Isolated"},
         {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}}}};
  return file;
}

BpeTokenizer load(const json& file) {
  return BpeTokenizer(from_hugging_face(file.dump(), "t.json"));
}

TEST(HuggingFace, ReadsTheShapeOfGpt2) {
  const BpeTokenizer tokenizer = load(gpt2_file());
  EXPECT_EQ(tokenizer.vocab_size(), 260U);
  EXPECT_THAT(tokenizer.model().patterns, ElementsAre(kGpt2Pattern));
  EXPECT_THAT(tokenizer.encode("he the<|endoftext|>"), ElementsAre(257, 258, 259));
  EXPECT_EQ(tokenizer.end_of_document(), 259U);
}

TEST(HuggingFace, ReadsTheShapeOfLlama3) {
  const BpeTokenizer tokenizer = load(llama3_file());
  EXPECT_TRUE(tokenizer.model().ignore_merges);
  EXPECT_THAT(tokenizer.model().patterns, ElementsAre(kLlama3Pattern));
  EXPECT_THAT(tokenizer.encode("he the 1<|end_of_text|>"), ElementsAre(257, 258, ' ', '1', 259));
  EXPECT_EQ(tokenizer.end_of_document(), 259U);
}

TEST(HuggingFace, ReadsTheShapeOfQwen2) {
  json file = llama3_file();
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_TRUE(load(file).model().compose);
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  json& stages = file["pre_tokenizer"]["pretokenizers"];
  stages.insert(stages.begin(), digits);
  EXPECT_THAT(load(file).encode("123"), ElementsAre('1', '2', '3'));
}

TEST(HuggingFace, WhatIsWrittenIsReadBack) {
  WordCounts counts;
  count_words(SplitterChain({kLlama3Pattern}), "the earth \"and\" the\\ \u0001heaven\n\nand the été", counts);
  BpeModel model = train_bpe(counts, 300, kLlama3Pattern);
  for (const bool flag : {false, true}) {
    model.ignore_merges = model.compose = flag;
    EXPECT_EQ(from_hugging_face(to_hugging_face(model), "t.json"), model);
  }
  EXPECT_EQ(from_hugging_face(to_hugging_face(byte_model()), "t.json"), byte_model());
}

template <typename Error, typename Change>
std::string after(Change&& change) {
  json file = llama3_file();
  change(file);
  return error_of<Error>([&] { load(file); });
}

TEST(HuggingFace, CorruptFilesAreRefused) {
  EXPECT_THAT(error_of<DataError>([] { from_hugging_face("{\"model\": ", "t.json"); }),
              HasSubstr("t.json: this is not valid JSON"));
  EXPECT_THAT(error_of<DataError>([] { from_hugging_face("[]", "t.json"); }), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of<DataError>([] { from_hugging_face("{}", "t.json"); }),
              HasSubstr("'model' is missing"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"] = 3; }), HasSubstr("'vocab'"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"]["he"] = -1; }), HasSubstr("token 'he'"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"]["he"] = 1ULL << 40; }),
              HasSubstr("token 'he'"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"]["he"] = 70000; }), HasSubstr("below 65795"));
  EXPECT_THAT(after<DataError>([](json& f) {
                f["model"]["vocab"]["\u6f22"] = 300;
                f["model"]["vocab"]["\u6f22\u0120"] = 301;
                f["model"]["merges"].push_back({"\u6f22", "\u0120"});
              }),
              HasSubstr("merge 3 uses a token that is not made of bytes"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"]["he"] = 258; }),
              HasSubstr("id 258 of another"));
  EXPECT_THAT(after<DataError>([](json& f) {
                f["model"]["merges"][0] = {"h", "x"};
              }),
              HasSubstr("merge 0 names 'hx'"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["merges"][1] = "h"; }),
              HasSubstr("merge 1 is neither"));
  EXPECT_THAT(after<DataError>([](json& f) {
                f["model"]["merges"][1] = {1, 2};
              }),
              HasSubstr("merge 1 is neither"));
  EXPECT_THAT(after<DataError>([](json& f) {
                f["model"]["merges"].push_back({"h", "e"});
              }),
              HasSubstr("merge 3 comes twice"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"].erase("a"); }),
              HasSubstr("no token for the byte 97"));
  EXPECT_THAT(after<DataError>([](json& f) { f["added_tokens"] = 1; }), HasSubstr("not a list"));
  EXPECT_THAT(after<DataError>([](json& f) { f["added_tokens"][0].erase("id"); }), HasSubstr("has no id"));
  EXPECT_THAT(after<DataError>([](json& f) { f["added_tokens"][0]["id"] = 5; }),
              HasSubstr("id 5 of another"));
  EXPECT_THAT(after<DataError>([](json& f) { f["added_tokens"][0]["content"] = ""; }), HasSubstr("is empty"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["ignore_merges"] = "yes"; }),
              HasSubstr("neither true nor false"));
}

TEST(HuggingFace, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(after<UsageError>([](json& f) { f["model"]["type"] = "Unigram"; }),
              HasSubstr("model type Unigram"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["model"]["byte_fallback"] = true; }),
              HasSubstr("ignore_merges together with byte_fallback"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["normalizer"] = {{"type", "Lowercase"}};
              }),
              HasSubstr("'Lowercase'"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["pre_tokenizer"] = {{"type", "Metaspace"}};
              }),
              HasSubstr("'Metaspace'"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["pre_tokenizer"] = nullptr; }),
              HasSubstr("without ByteLevel"));
  EXPECT_THAT(
      after<UsageError>([](json& f) { f["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }),
      HasSubstr("add_prefix_space"));
  EXPECT_THAT(
      after<UsageError>([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }),
      HasSubstr("Removed"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["added_tokens"][0]["lstrip"] = true; }), HasSubstr("lstrip"));
}

}  // namespace
}  // namespace lockstep::data
