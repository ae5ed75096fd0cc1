// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/text.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

TEST(Quote, EscapesWhatATerminalCouldInterpret) {
  EXPECT_EQ(quote("a b"), "'a b'");
  EXPECT_EQ(quote("\x1b[2J\n\xff"), "'\\x1b[2J\\x0a\\xff'");
}

TEST(Quote, CutsLongValues) {
  EXPECT_EQ(quote(std::string(1000, 'x')), "'" + std::string(64, 'x') + "...'");
}

TEST(ParseNumber, TakesTheLimitsThemselves) {
  EXPECT_EQ(parse_number({"X", "3"}, 3, 7), 3u);
  EXPECT_EQ(parse_number({"X", "7"}, 3, 7), 7u);
  EXPECT_EQ(parse_number({"X", "007"}, 3, 7), 7u);
}

TEST(ParseNumber, RefusesEverythingElse) {
  for (const char* text :
       {"", " 3", "3 ", "+3", "-3", "3.0", "3x", "0x3", "2", "8", "99999999999999999999999"}) {
    EXPECT_THROW(parse_number({"X", text}, 3, 7), UsageError) << text;
  }
}

TEST(ParseNumber, NamesTheSettingTheValueAndTheRange) {
  try {
    parse_number({"RANK", "two"}, 0, 7);
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "RANK is 'two': expected a whole number from 0 to 7");
  }
}

TEST(ListOf, JoinsRunsOfThree) {
  EXPECT_EQ(list_of(std::vector<int>{}), "");
  EXPECT_EQ(list_of(std::vector{4}), "4");
  EXPECT_EQ(list_of(std::vector{1, 2}), "1, 2");
  EXPECT_EQ(list_of(std::vector{1, 3, 4, 5, 9}), "1, 3-5, 9");
}

TEST(ListOf, CutsLongLists) {
  std::vector<int> odd;
  for (int i = 0; i < 40; ++i) odd.push_back(2 * i + 1);
  const std::string text = list_of(odd);
  EXPECT_TRUE(text.ends_with("31 and 24 more")) << text;
}

}  // namespace
}  // namespace lockstep::rendezvous
