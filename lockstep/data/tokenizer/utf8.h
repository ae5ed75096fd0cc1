// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::data {

// Where the first byte stands that is not part of valid UTF-8 (RFC 3629: no overlong forms, no surrogates,
// nothing beyond U+10FFFF); the size of the text when it is valid.
std::size_t valid_utf8_prefix(std::string_view text);

// DataError naming the first byte that is not valid.
void require_valid_utf8(std::string_view text);

bool is_ascii(std::string_view text);

// `code_point` is a Unicode scalar value.
void append_utf8(char32_t code_point, std::string& text);

// Reads the code point at `at` of a valid text and moves `at` behind it.
char32_t next_code_point(std::string_view text, std::size_t& at);

}  // namespace lockstep::data
