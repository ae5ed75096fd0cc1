// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include "lockstep/data/tokenizer/byte_map.h"

namespace lockstep::data {
namespace {

TEST(Utf8, EveryCodePointSurvives) {
  for (char32_t code_point = 0; code_point < 0x110000; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    std::string text;
    append_utf8(code_point, text);
    ASSERT_EQ(valid_utf8_prefix(text), text.size()) << std::hex << static_cast<unsigned>(code_point);
    std::size_t at = 0;
    ASSERT_EQ(next_code_point(text, at), code_point);
    ASSERT_EQ(at, text.size());
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  const auto first_bad = [](const std::string& bad) {
    return valid_utf8_prefix("0123456789" + bad + "abcdefghijk");
  };
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x9F\x98", "\xFF"}) {
    EXPECT_EQ(first_bad(bad), 10U) << bad;
  }
  EXPECT_EQ(valid_utf8_prefix("\xF0\x9F\x98"), 0U);
  EXPECT_EQ(valid_utf8_prefix("ab\xE2\x82\xAC"), 5U);
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
}

TEST(Utf8, KnowsAscii) {
  EXPECT_TRUE(is_ascii(""));
  EXPECT_TRUE(is_ascii("plain text of some length"));
  for (std::size_t at = 0; at < 20; ++at) {
    std::string text(20, 'a');
    text[at] = '\x80';
    EXPECT_FALSE(is_ascii(text));
  }
}

TEST(ByteMap, IsABijectionWithTheKnownFixedPoints) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(from_visible(to_visible(all)), all);
  EXPECT_EQ(to_visible(" a\n\xAD"), "\u0120a\u010A\u0143");
  EXPECT_EQ(from_visible("a b"), std::nullopt);
  EXPECT_EQ(from_visible("\u0144"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::data
