// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/corpus_tokenizer.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/hugging_face.h"

#include "tests/data/vocabularies.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using test::error_of;
using ::testing::HasSubstr;
using testing::model_with;

constexpr const char* kNone = "no such error";

class CorpusTokenizer : public ::testing::Test {
 protected:
  CorpusTokenizer() {
    file_ = to_hugging_face(model_with({"he", "th"}));
    a_ = folder_.path("a");
    folder_.write("a.tokenizer.json", file_);
  }

  // The sentence about corpora with these names, or kNone.
  std::string refusal(const std::vector<std::string>& names,
                      const std::optional<OwnedTokenizer>& expected = std::nullopt) const {
    std::vector<std::string> corpora;
    for (const std::string& name : names) corpora.push_back(folder_.path(name));
    return error_of<UsageError>([&] { require_same_tokenizer(corpora, expected); });
  }

  test::TemporaryFolder folder_;
  std::string file_;  // content of the tokenizer beside corpus a
  std::string a_;
};

TEST_F(CorpusTokenizer, CorporaOfOneVocabularyFit) {
  auto json = nlohmann::json::parse(file_);
  folder_.write("copy.tokenizer.json", file_);
  folder_.write("other_spaces.tokenizer.json", json.dump());
  json["added_tokens"].push_back({{"id", 300}, {"content", "<user>"}, {"special", true}});
  folder_.write("more_added.tokenizer.json", json.dump(4));
  EXPECT_EQ(refusal({"a", "copy", "other_spaces", "more_added", "a"}), kNone);
  EXPECT_EQ(refusal({"more_added", "other_spaces", "a"}), kNone);
}

TEST_F(CorpusTokenizer, BothSidesAndTheRemedyAreNamed) {
  folder_.write("b.tokenizer.json", to_hugging_face(model_with({"he", "an", "th"})));
  const std::string b = folder_.path("b");
  EXPECT_EQ(refusal({"a", "made_elsewhere", "b"}),
            b + " was made with another tokenizer than that of " + a_ + ": token 258 is 'an' in " + b +
                ".tokenizer.json, but 'th' in " + a_ + ".tokenizer.json; prepare its text again with " +
                "--tokenizer " + a_ + ".tokenizer.json");
  folder_.write("b.tokenizer.json", to_hugging_face(model_with({"he"})));
  EXPECT_THAT(refusal({"a", "b"}),
              HasSubstr("token 258 is missing in " + b + ".tokenizer.json, but 'th' in"));
}

TEST_F(CorpusTokenizer, WordsAreShownAsTheyAreUnlessTheyAreNoText) {
  const auto sentence = [&](const std::string& one, const std::string& other) {
    folder_.write("one.tokenizer.json", to_hugging_face(model_with({one})));
    folder_.write("other.tokenizer.json", to_hugging_face(model_with({other})));
    return refusal({"one", "other"});
  };
  const auto shown = [&](const std::string& one, const std::string& other) {
    return "token 257 is '" + other + "' in " + folder_.path("other.tokenizer.json") + ", but '" + one +
           "' in " + folder_.path("one.tokenizer.json");
  };
  EXPECT_THAT(sentence("\xD0\xB6", "\xD0\xB4"), HasSubstr(shown("\xD0\xB6", "\xD0\xB4")));
  EXPECT_THAT(sentence("\xE6\xB5", "\xE6\xB6"), HasSubstr(shown("\\xe6\\xb5", "\\xe6\\xb6")));
  EXPECT_THAT(sentence("\xC2\x9B", "\x1B["), HasSubstr(shown("\\xc2\\x9b", "\\x1b[")));
}

TEST_F(CorpusTokenizer, WhatIsExpectedIsComparedFirst) {
  const OwnedTokenizer other = {.name = "bytes",
                                .owner = "data.tokenizer",
                                .content = to_hugging_face(byte_model()),
                                .remedy = ", or leave it out"};
  EXPECT_EQ(refusal({"a"}, other),
            a_ + " was made with another tokenizer than that of data.tokenizer: token 257 is 'he' in " + a_ +
                ".tokenizer.json, but missing in bytes; prepare its text again with --tokenizer bytes, or " +
                "leave it out");
  EXPECT_EQ(refusal({"a"}, OwnedTokenizer{.name = "t", .owner = "it", .content = file_}), kNone);
  EXPECT_EQ(refusal({"made_elsewhere"}, other), kNone);
}

TEST_F(CorpusTokenizer, FilesOfOneCorpusAreComparedToo) {
  for (const char* name : {"web_1", "web_2"}) folder_.write(std::string(name) + ".bin", "");
  folder_.write("web_1.tokenizer.json", file_);
  EXPECT_EQ(refusal({"web_*.bin"}), kNone);
  std::filesystem::create_hard_link(folder_.path("web_1.tokenizer.json"),
                                    folder_.path("web_2.tokenizer.json"));
  EXPECT_EQ(refusal({"web_*.bin"}), kNone);
  std::filesystem::remove(folder_.path("web_2.tokenizer.json"));
  folder_.write("web_2.tokenizer.json", to_hugging_face(byte_model()));
  EXPECT_THAT(refusal({"web_*.bin"}), HasSubstr("web_2.bin was made with another tokenizer than that of "));
  EXPECT_THAT(refusal({""}), HasSubstr("web_2.bin was made with another"));
}

// It may be that of another program.
TEST_F(CorpusTokenizer, WhatIsNotSupportedSaysNothing) {
  auto json = nlohmann::json::parse(file_);
  json["model"]["type"] = "Unigram";
  folder_.write("unigram.tokenizer.json", json.dump());
  folder_.write("b.tokenizer.json", to_hugging_face(byte_model()));
  EXPECT_EQ(refusal({"unigram", "a"}), kNone);
  EXPECT_EQ(refusal({"a"}, OwnedTokenizer{.name = "t", .owner = "it", .content = json.dump()}), kNone);
  EXPECT_THAT(refusal({"unigram", "a", "b"}),
              HasSubstr("b was made with another tokenizer than that of " + a_));
}

TEST_F(CorpusTokenizer, SentencepieceModelsAreComparedWithEachOther) {
  folder_.write("b.tokenizer.model", "one");
  folder_.write("c.tokenizer.model", "one");
  EXPECT_EQ(refusal({"a", "b", "c"}), kNone);
  folder_.write("c.tokenizer.model", "two");
  EXPECT_THAT(refusal({"a", "b", "c"}),
              HasSubstr(": " + folder_.path("c.tokenizer.model") + " and " +
                        folder_.path("b.tokenizer.model") + " are different files; prepare"));
  const OwnedTokenizer model = {.name = "m/tokenizer.model", .owner = "m", .content = "one"};
  EXPECT_EQ(refusal({"a", "b"}, model), kNone);
  EXPECT_EQ(refusal({"a", "c"}, model),
            folder_.path("c") +
                " was made with another tokenizer than that of m: " + folder_.path("c.tokenizer.model") +
                " and m/tokenizer.model are different files; prepare its text again with --tokenizer " +
                "m/tokenizer.model");
}

TEST_F(CorpusTokenizer, TwoAreComparedWithoutACorpus) {
  const OwnedTokenizer one = {.name = "one", .owner = "it", .content = file_};
  OwnedTokenizer other = {.name = "other", .owner = "that", .content = nlohmann::json::parse(file_).dump()};
  EXPECT_EQ(difference_between(one, other), std::nullopt);
  other.content = to_hugging_face(model_with({"he", "an"}));
  EXPECT_EQ(difference_between(one, other), "token 258 is 'th' in one, but 'an' in other");
  other.name = "other.model";
  EXPECT_EQ(difference_between(one, other), std::nullopt) << "another kind";
}

TEST_F(CorpusTokenizer, CorruptOnesAreBadData) {
  folder_.write("b.tokenizer.json", "{");
  EXPECT_THAT(error_of<DataError>([&] {
                require_same_tokenizer({a_, folder_.path("b")}, std::nullopt);
              }),
              HasSubstr(folder_.path("b.tokenizer.json")));
}

}  // namespace
}  // namespace lockstep::data
