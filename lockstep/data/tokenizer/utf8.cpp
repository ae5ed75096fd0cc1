// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/utf8.h"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

bool next_eight_are_ascii(std::string_view text, std::size_t at) {
  if (text.size() - at < 8) return false;
  std::uint64_t eight = 0;
  std::memcpy(&eight, text.data() + at, sizeof eight);
  return (eight & kHighBits) == 0;
}

unsigned char byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool within(unsigned char byte, unsigned char low, unsigned char high) {
  return low <= byte && byte <= high;
}

// The bytes of the sequence that begins with a byte of 0x80 or more; 0 when it is invalid. Table 3-7 of the
// Unicode standard: only the second byte depends on the first.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const unsigned char first = byte_at(text, at);
  const unsigned char second = byte_at(text, at + 1);
  const auto continues = [&](std::size_t offset) { return within(byte_at(text, at + offset), 0x80, 0xBF); };
  if (within(first, 0xC2, 0xDF)) return continues(1) ? 2 : 0;
  if (within(first, 0xE0, 0xEF)) {
    const bool good = within(second, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return good && continues(2) ? 3 : 0;
  }
  if (within(first, 0xF0, 0xF4)) {
    const bool good = within(second, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return good && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (next_eight_are_ascii(text, at)) {
      at += 8;
    } else if (byte_at(text, at) < 0x80) {
      ++at;
    } else {
      const std::size_t length = sequence_length(text, at);
      if (length == 0) return at;
      at += length;
    }
  }
  return at;
}

void require_valid_utf8(std::string_view text) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid < text.size()) throw DataError(fmt::format("byte {} of the text is not valid UTF-8", valid));
}

bool is_ascii(std::string_view text) {
  std::size_t at = 0;
  while (next_eight_are_ascii(text, at)) at += 8;
  while (at < text.size() && byte_at(text, at) < 0x80) ++at;
  return at == text.size();
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  const auto put_tail = [&](int shift) { put(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_tail(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_tail(6);
    put_tail(0);
  } else {
    put(0xF0 | code_point >> 18);
    put_tail(12);
    put_tail(6);
    put_tail(0);
  }
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const char32_t first = byte_at(text, at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  char32_t code_point = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) code_point = code_point << 6 | (byte_at(text, at++) & 0x3F);
  return code_point;
}

}  // namespace lockstep::data
