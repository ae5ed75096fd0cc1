// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/byte_map.h"

#include <array>

#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data {
namespace {

constexpr char32_t kFirstOther = 0x100;
constexpr std::size_t kOthers = 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

constexpr std::array<char32_t, 256> make_code_points() {
  std::array<char32_t, 256> code_points{};
  char32_t other = kFirstOther;
  for (unsigned byte = 0; byte < 256; ++byte) code_points[byte] = stands_for_itself(byte) ? byte : other++;
  return code_points;
}

constexpr std::array<char32_t, 256> kCodePoints = make_code_points();

constexpr std::array<unsigned char, kOthers> make_others() {
  std::array<unsigned char, kOthers> others{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!stands_for_itself(byte)) others[kCodePoints[byte] - kFirstOther] = static_cast<unsigned char>(byte);
  }
  return others;
}

constexpr std::array<unsigned char, kOthers> kOtherBytes = make_others();

}  // namespace

std::string to_visible(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(kCodePoints[static_cast<unsigned char>(byte)], text);
  return text;
}

std::optional<std::string> from_visible(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code_point = next_code_point(text, at);
    if (code_point < 256 && stands_for_itself(code_point)) {
      bytes += static_cast<char>(code_point);
    } else if (code_point >= kFirstOther && code_point < kFirstOther + kOthers) {
      bytes += static_cast<char>(kOtherBytes[code_point - kFirstOther]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace lockstep::data
