// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

#include "tests/data/texts.h"
#include "tests/support/error_of.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(const std::vector<std::string>& patterns, std::string_view text) {
  std::vector<std::size_t> ends;
  SplitterChain(patterns).split(text, ends);
  std::vector<std::string> found;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    found.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

TEST(Splitter, CutsAsGpt2) {
  EXPECT_THAT(
      words({kGpt2Pattern}, "We'll go  to B12's, 2024!\n\n Ok \n"),
      ElementsAre("We", "'ll", " go", " ", " to", " B", "12", "'s", ",", " 2024", "!", "\n\n", " Ok", " \n"));
  EXPECT_THAT(words({kGpt2Pattern}, "WE'LL"), ElementsAre("WE", "'", "LL"));
}

TEST(Splitter, CutsAsLlama3) {
  EXPECT_THAT(words({kLlama3Pattern}, "We'LL go  to B12345's, 2024!\n\n Ok \n"),
              ElementsAre("We", "'LL", " go", " ", " to", " B", "123", "45", "'s", ",", " ", "202", "4",
                          "!\n\n", " Ok", " \n"));
  EXPECT_THAT(words({kLlama3Pattern}, "(é漢)"), ElementsAre("(é漢", ")"));
}

TEST(Splitter, CutsAsQwen2) {
  EXPECT_THAT(words({kQwen2Pattern}, "a 123"), ElementsAre("a", " ", "1", "2", "3"));
}

// U+180E is no white space to Unicode since version 6.3, though it is to PCRE2; U+00A0 and U+0085 are.
TEST(Splitter, WhiteSpaceIsThatOfUnicode) {
  EXPECT_THAT(words({R"(\s+)"}, "a\u180e\u00a0\u0085\u2003b"),
              ElementsAre("a\u180e", "\u00a0\u0085\u2003", "b"));
  EXPECT_THAT(words({R"([^\s]+)"}, "a\u180e \u0085b"), ElementsAre("a\u180e", " \u0085", "b"));
  EXPECT_THAT(words({R"(\S+)"}, "a\u180e b"), ElementsAre("a\u180e", " ", "b"));
}

TEST(Splitter, StagesRefineEachOther) {
  EXPECT_THAT(words({R"(\p{N})", R"(\s?\p{L}+)"}, "ab12 cd"), ElementsAre("ab", "1", "2", " cd"));
  EXPECT_THAT(words({}, "ab 12"), ElementsAre("ab 12"));
  EXPECT_THAT(words({"x*"}, "abxxé"), ElementsAre("ab", "xx", "é"));
}

RC_GTEST_PROP(Splitter, WordsAreTheTextAndNeverEmpty, ()) {
  const std::string text = testing::arbitrary_text();
  const auto pattern = *rc::gen::element(kGpt2Pattern, kLlama3Pattern, kQwen2Pattern, "", "a|(?=b)");
  std::string joined;
  for (const std::string& word : words({pattern}, text)) {
    RC_ASSERT(!word.empty());
    joined += word;
  }
  RC_ASSERT(joined == text);
}

TEST(Splitter, LongRunsStayLinear) {
  EXPECT_EQ(words({kGpt2Pattern}, std::string(1 << 20, ' ')).size(), 1U);
  EXPECT_EQ(words({kLlama3Pattern}, std::string(1 << 20, '!')).size(), 1U);
  EXPECT_EQ(words({kLlama3Pattern}, std::string(1 << 20, '\n') + "a").size(), 2U);
}

TEST(Splitter, RefusesPatternsItCannotRead) {
  EXPECT_THAT(test::error_of<UsageError>([] { regex_splitter("(abc"); }), HasSubstr("'(abc'"));
  EXPECT_THAT(test::error_of<UsageError>([] { regex_splitter(std::string(100000, 'a')); }),
              HasSubstr("too long"));
}

}  // namespace
}  // namespace lockstep::data
