// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/metaspace_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/utf8.h"

#include "tests/data/metaspace_file.h"
#include "tests/data/texts.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::data {
namespace {

using nlohmann::json;
using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::metaspace_file;

constexpr Token kMark = 259, kT = 260, kH = 261, kA = 263, kMarkT = 264, kHe = 265, kThe = 266,
                kTwoMarks = 267;
constexpr Token kEnd = 2;

constexpr Token byte(unsigned char value) {
  return Token{3} + value;
}

// Shaped like newer files, such as those of Mistral.
json pre_tokenized_file(const char* scheme, bool split = false) {
  json file = metaspace_file();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}, {"split", split}};
  return file;
}

std::unique_ptr<Tokenizer> load(const json& file) {
  return make_tokenizer(from_hugging_face(file.dump(), "t.json"), file.dump());
}

std::vector<Token> encode(const json& file, std::string_view text) {
  return load(file)->encode(text);
}

TEST(MetaspaceTokenizer, MergesWordsWithTheSpaceBeforeThem) {
  const auto tokenizer = load(metaspace_file());
  EXPECT_EQ(tokenizer->vocab_size(), 269U);
  EXPECT_THAT(tokenizer->encode("the"), ElementsAre(kThe));
  EXPECT_THAT(tokenizer->encode("the the a"), ElementsAre(kThe, kThe, kMark, kA));
  EXPECT_THAT(tokenizer->encode("athe"), ElementsAre(kMark, kA, kT, kHe));
  EXPECT_THAT(tokenizer->encode("th"), ElementsAre(kMarkT, kH));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
}

TEST(MetaspaceTokenizer, KeepsSpacesWhereverTheyAre) {
  const auto tokenizer = load(metaspace_file());
  EXPECT_THAT(tokenizer->encode(" the"), ElementsAre(kMark, kThe));
  EXPECT_THAT(tokenizer->encode("the  the"), ElementsAre(kThe, kMark, kThe));
  EXPECT_THAT(tokenizer->encode("the "), ElementsAre(kThe, kMark));
  EXPECT_THAT(tokenizer->encode("  "), ElementsAre(kTwoMarks, kMark));
  for (const char* text : {" the", "the  the", "the ", " ", "  ", "   a ", "a\n the\t"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(MetaspaceTokenizer, WhatIsNotInTheVocabularyBecomesBytes) {
  const auto tokenizer = load(metaspace_file());
  EXPECT_THAT(tokenizer->encode("x\n"), ElementsAre(kMark, byte('x'), byte('\n')));
  EXPECT_THAT(tokenizer->encode("\u00e9"), ElementsAre(kMark, 268));
  EXPECT_THAT(tokenizer->encode("a\u6f22the"),
              ElementsAre(kMark, kA, byte(0xE6), byte(0xBC), byte(0xA2), kT, kHe));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\u6f22the")), "a\u6f22the");
  // The text of a byte's token is no byte.
  EXPECT_THAT(tokenizer->encode("<0x41>"),
              ElementsAre(kMark, byte('<'), byte('0'), byte('x'), byte('4'), byte('1'), byte('>')));
}

TEST(MetaspaceTokenizer, TheMarkInATextIsASpace) {
  const auto tokenizer = load(metaspace_file());
  EXPECT_THAT(tokenizer->encode("a\u2581the"), ElementsAre(kMark, kA, kThe));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\u2581the")), "a the");
}

// A space in the vocabulary's file is not the mark, so no text leads to it.
TEST(MetaspaceTokenizer, ASpaceOfTheVocabularyIsNeverUsed) {
  json file = metaspace_file();
  file["model"]["vocab"][" "] = 269;
  EXPECT_THAT(encode(file, " a"), ElementsAre(kTwoMarks, kA));
  EXPECT_EQ(load(file)->decode(std::vector<Token>{kA, 269, kA}), "a a");
}

TEST(MetaspaceTokenizer, DecodingDropsOneSpaceWhereATextBegins) {
  const auto tokenizer = load(metaspace_file());
  EXPECT_EQ(tokenizer->decode(std::vector<Token>{kTwoMarks, kThe}), "  the");
  EXPECT_EQ(tokenizer->decode(std::vector<Token>{kEnd, kThe}), "</s> the");
  std::string text = "a";
  tokenizer->decode(std::vector<Token>{kThe}, text);
  tokenizer->decode(std::vector<Token>{byte(0xE6)}, text);
  EXPECT_EQ(text, "a the\xE6");
  json file = metaspace_file();
  file["decoder"]["decoders"].erase(3);
  EXPECT_EQ(load(file)->decode(std::vector<Token>{kThe}), " the");
  EXPECT_THAT(error_of<DataError>([&] { tokenizer->decode(std::vector<Token>{269}); }),
              HasSubstr("token 269"));
}

TEST(MetaspaceTokenizer, AddedTokensDivideATextIntoParts) {
  const json file = metaspace_file();
  EXPECT_THAT(encode(file, "the</s>the"), ElementsAre(kThe, kEnd, kThe));
  EXPECT_THAT(encode(file, "the </s>"), ElementsAre(kThe, kMark, kEnd));
  EXPECT_THAT(encode(file, "</s> the"), ElementsAre(kEnd, kMark, kThe));
  EXPECT_EQ(load(file)->end_of_document(), kEnd);
  EXPECT_EQ(load(file)->find("<s>"), 1U);
  EXPECT_EQ(load(file)->find(" the"), kThe);
  EXPECT_EQ(load(file)->find("none"), std::nullopt);
}

// As Hugging Face does: such a token has a mark too, and is found only where a text has one.
TEST(MetaspaceTokenizer, NormalizedAddedTokensAreSearchedWithTheirMark) {
  json file = metaspace_file();
  file["added_tokens"][2]["normalized"] = true;
  EXPECT_THAT(encode(file, "</s>the"), ElementsAre(kEnd, kT, kHe));
  EXPECT_THAT(encode(file, "a </s>"), ElementsAre(kMark, kA, kEnd));
  EXPECT_THAT(encode(file, "a</s>"), ElementsAre(kMark, kA, byte('<'), byte('/'), byte('s'), byte('>')));
  EXPECT_THAT(encode(file, "a<s></s>"), ElementsAre(kMark, kA, 1, kEnd));
  json other = pre_tokenized_file("first");
  other["added_tokens"][2]["normalized"] = true;
  EXPECT_THAT(encode(other, "a</s>the"), ElementsAre(kMark, kA, kEnd, kT, kHe));
}

TEST(MetaspaceTokenizer, PreTokenizersPutTheMarkWhereItIsMissing) {
  const json first = pre_tokenized_file("first"), always = pre_tokenized_file("always"),
             never = pre_tokenized_file("never");
  for (const json& file : {first, always}) {
    EXPECT_THAT(encode(file, "the"), ElementsAre(kThe));
    EXPECT_THAT(encode(file, " the"), ElementsAre(kThe));
    EXPECT_THAT(encode(file, "\u2581the"), ElementsAre(kThe));
    EXPECT_THAT(encode(file, "</s> the"), ElementsAre(kEnd, kThe));
    EXPECT_THAT(encode(file, ""), ElementsAre());
  }
  EXPECT_THAT(encode(first, "the</s>the"), ElementsAre(kThe, kEnd, kT, kHe));
  EXPECT_THAT(encode(always, "the</s>the"), ElementsAre(kThe, kEnd, kThe));
  EXPECT_THAT(encode(never, "the the"), ElementsAre(kT, kHe, kThe));
  json older = pre_tokenized_file("always");
  older["pre_tokenizer"].erase("prepend_scheme");
  older["pre_tokenizer"]["add_prefix_space"] = false;
  EXPECT_THAT(encode(older, "the"), ElementsAre(kT, kHe));
}

TEST(MetaspaceTokenizer, PreTokenizersMayCutBeforeEverySpace) {
  EXPECT_THAT(encode(pre_tokenized_file("always", true), "  a the"), ElementsAre(kMark, kMark, kA, kThe));
  EXPECT_THAT(encode(pre_tokenized_file("always", false), "  a"), ElementsAre(kTwoMarks, kA));
  json by_default = pre_tokenized_file("always");
  by_default["pre_tokenizer"].erase("split");
  EXPECT_THAT(encode(by_default, "  a"), ElementsAre(kMark, kMark, kA));
}

TEST(MetaspaceTokenizer, ANormalizerWithoutPrependAddsNothing) {
  json file = metaspace_file();
  file["normalizer"] = file["normalizer"]["normalizers"][1];
  EXPECT_THAT(encode(file, "the the"), ElementsAre(kT, kHe, kThe));
}

TEST(MetaspaceTokenizer, TextThatGoesOnHasNoMark) {
  for (const json& file : {metaspace_file(), pre_tokenized_file("first"), pre_tokenized_file("always")}) {
    const auto tokenizer = load(file);
    std::vector<Token> tokens;
    tokenizer->encoder()->encode_more("the the", tokens);
    EXPECT_THAT(tokens, ElementsAre(kT, kHe, kThe));
  }
}

// The tokens of a vocabulary in which merges join words.
json meeting_file() {
  json file = metaspace_file();
  file["model"]["vocab"]["e\u2581"] = 269;
  file["model"]["merges"].insert(file["model"]["merges"].begin(), "e \u2581");
  return file;
}

TEST(MetaspaceTokenizer, MergesMayJoinWords) {
  EXPECT_THAT(encode(meeting_file(), "the a"), ElementsAre(kMarkT, kH, 269, kA));
}

// The definition: the whole text begins as characters or bytes; the earliest merge of the list that applies
// is done first, the leftmost place first.
std::vector<Token> encode_by_definition(const json& file, const std::string& text) {
  const json& vocabulary = file["model"]["vocab"];
  std::vector<std::string> word;
  const auto add = [&](const std::string& character) {
    if (vocabulary.contains(character)) return word.push_back(character);
    for (const char c : character) word.push_back(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
  };
  if (!text.empty()) add("\u2581");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    next_code_point(text, at);
    const std::string character = text.substr(begin, at - begin);
    add(character == " " ? "\u2581" : character);
  }
  const auto& merges = file["model"]["merges"];
  for (std::size_t rank = 0; rank < merges.size();) {
    std::size_t at = 0;
    while (at + 1 < word.size() && word[at] + " " + word[at + 1] != merges[rank]) ++at;
    if (at + 1 >= word.size()) {
      ++rank;
      continue;
    }
    word[at] += word[at + 1];
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    rank = 0;
  }
  std::vector<Token> tokens;
  for (const std::string& token : word) tokens.push_back(vocabulary[token]);
  return tokens;
}

std::string spaced_text() {
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
      std::vector<std::string>{"the", "the", "t", "he", "a", " ", " ", "  ", "\u2581", "\n"}));
  std::string text;
  for (const std::string& word : words) text += word;
  return text + testing::arbitrary_text();
}

RC_GTEST_PROP(MetaspaceTokenizer, EncodesByTheDefinition, ()) {
  static const std::vector<json> files = {metaspace_file(), meeting_file()};
  static const std::unique_ptr<Tokenizer> tokenizers[] = {load(files[0]), load(files[1])};
  const std::string text = spaced_text();
  for (std::size_t i = 0; i < files.size(); ++i) {
    RC_ASSERT(tokenizers[i]->encode(text) == encode_by_definition(files[i], text));
  }
}

RC_GTEST_PROP(MetaspaceTokenizer, RoundTripIsTheIdentityButForMarks, ()) {
  static const auto tokenizer = load(metaspace_file());
  std::string text = spaced_text();
  const auto tokens = tokenizer->encode(text);
  for (std::size_t at = 0; (at = text.find("\u2581", at)) != std::string::npos;) text.replace(at, 3, " ");
  RC_ASSERT(tokenizer->decode(tokens) == text);
}

TEST(MetaspaceTokenizer, IsLoadedAndSavedAsItsFile) {
  test::TemporaryFolder folder;
  const std::string path = folder.write("tokenizer.json", metaspace_file().dump());
  EXPECT_EQ(load_tokenizer(path)->serialized(), metaspace_file().dump());
  EXPECT_THAT(load_tokenizer(path)->encode("the"), ElementsAre(kThe));
  EXPECT_THAT(error_of<DataError>([&] { load_tokenizer(path)->encode("a\xFF"); }), HasSubstr("byte 1"));
}

template <typename Error, typename Change>
std::string after(Change&& change) {
  json file = metaspace_file();
  change(file);
  return error_of<Error>([&] { load(file); });
}

TEST(MetaspaceTokenizer, CorruptFilesAreRefused) {
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"].erase("<0x0A>"); }),
              HasSubstr("t.json: byte_fallback needs a token for every byte, but there is no <0x0A>"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["byte_fallback"] = "yes"; }),
              HasSubstr("neither true nor false"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["vocab"]["the"] = 5; }), HasSubstr("of another"));
  EXPECT_THAT(after<DataError>([](json& f) {
                f["model"]["vocab"]["<0x41>a"] = 269;
                f["model"]["merges"].push_back("<0x41> a");
              }),
              HasSubstr("merge 4 uses a token that stands for a byte"));
  EXPECT_THAT(after<DataError>([](json& f) { f["model"]["merges"].push_back("a x"); }),
              HasSubstr("merge 4 names 'x'"));
  EXPECT_THAT(after<DataError>([](json& f) { f["normalizer"]["normalizers"] = 1; }),
              HasSubstr("'normalizers' is missing"));
  EXPECT_THAT(after<DataError>([](json& f) { f["normalizer"]["normalizers"][1].erase("pattern"); }),
              HasSubstr("'pattern' is missing"));
  EXPECT_THAT(after<DataError>([](json& f) { f["decoder"].erase("decoders"); }),
              HasSubstr("'decoders' is missing"));
  EXPECT_THAT(after<DataError>([](json& f) { f["added_tokens"][0]["normalized"] = 1; }),
              HasSubstr("'normalized' is neither"));
}

TEST(MetaspaceTokenizer, WhatIsNotSupportedIsNamed) {
  const json metaspace = pre_tokenized_file("first")["pre_tokenizer"];
  EXPECT_THAT(after<UsageError>([](json& f) { f["model"]["byte_fallback"] = false; }),
              HasSubstr("normalizer 'Sequence' is not supported"));
  EXPECT_THAT(after<UsageError>([&](json& f) {
                f["model"]["byte_fallback"] = false;
                f["normalizer"] = nullptr;
                f["pre_tokenizer"] = metaspace;
              }),
              HasSubstr("pre_tokenizer 'Metaspace' without byte_fallback is not supported"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["model"]["ignore_merges"] = true; }),
              HasSubstr("ignore_merges together with byte_fallback"));
  EXPECT_THAT(after<UsageError>([&](json& f) { f["pre_tokenizer"] = metaspace; }),
              HasSubstr("a normalizer together with Metaspace"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["normalizer"] = nullptr; }),
              HasSubstr("byte_fallback without normalizer and pre_tokenizer"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["normalizer"] = {{"type", "NFKC"}};
              }),
              HasSubstr("a normalizer of NFKC that is not Prepend and Replace"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["normalizer"]["normalizers"][0]["prepend"] = "x"; }),
              HasSubstr("a normalizer of Prepend, Replace"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["normalizer"]["normalizers"].push_back({{"type", "Lowercase"}});
              }),
              HasSubstr("a normalizer of Prepend, Replace, Lowercase"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["normalizer"]["normalizers"] = json::array(); }),
              HasSubstr("a normalizer of"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["normalizer"] = nullptr;
                f["pre_tokenizer"] = {{"type", "ByteLevel"}};
              }),
              HasSubstr("byte_fallback with the pre_tokenizer 'ByteLevel'"));
  EXPECT_THAT(after<UsageError>([&](json& f) {
                f["normalizer"] = nullptr;
                f["pre_tokenizer"] = metaspace;
                f["pre_tokenizer"]["add_prefix_space"] = false;
              }),
              HasSubstr("prepend_scheme 'first' of Metaspace with add_prefix_space false"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["decoder"] = nullptr; }), HasSubstr("without a decoder"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["decoder"]["decoders"][3]["start"] = 2; }),
              HasSubstr("a decoder of Replace, ByteFallback, Fuse, Strip that is not"));
  EXPECT_THAT(after<UsageError>([](json& f) { f["decoder"]["decoders"].erase(1); }),
              HasSubstr("a decoder of Replace, Fuse, Strip"));
  EXPECT_THAT(after<UsageError>([](json& f) {
                f["decoder"] = {{"type", "Metaspace"}};
              }),
              HasSubstr("a decoder of Metaspace"));
}

// Text that would exhaust the stack of whoever prints or copies it.
TEST(MetaspaceTokenizer, ADeepNestIsRefused) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  for (const char* field : {"normalizer", "pre_tokenizer", "decoder"}) {
    json file = metaspace_file();
    file[field] = "DEEP";
    if (std::string(field) == "pre_tokenizer") file["normalizer"] = nullptr;
    std::string text = file.dump();
    text.replace(text.find("\"DEEP\""), 6,
                 R"({"type":"Sequence","normalizers":[)" + deep + R"(],"decoders":[)" + deep + "]}");
    EXPECT_THROW(from_hugging_face(text, "t.json"), UsageError) << field;
  }
}

}  // namespace
}  // namespace lockstep::data
