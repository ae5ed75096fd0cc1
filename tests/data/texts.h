// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <rapidcheck.h>

#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data::testing {

// Valid UTF-8 of any scripts, with much that pre-tokenizers treat specially.
inline std::string arbitrary_text() {
  const auto code_points = *rc::gen::container<std::u32string>(rc::gen::weightedOneOf<char32_t>(
      {{4, rc::gen::inRange<char32_t>(U' ', U'\x7f')},
       {3,
        rc::gen::elementOf(std::u32string(U"\n\r\t  'sStTllveréüßſКириллица漢字かな\u00a0\u180e\u0301²½٣"))},
       {1, rc::gen::inRange<char32_t>(0, 0xD800)},
       {1, rc::gen::inRange<char32_t>(0xE000, 0x110000)}}));
  std::string text;
  for (const char32_t code_point : code_points) append_utf8(code_point, text);
  return text;
}

}  // namespace lockstep::data::testing
