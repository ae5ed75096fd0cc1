// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/printable.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace lockstep::cli {
namespace {

bool is_acted_on(utf8proc_int32_t letter) {
  const bool is_control = letter < 0x20 || (letter >= 0x7f && letter < 0xa0);
  const bool turns_text = (letter >= 0x202a && letter <= 0x202e) || (letter >= 0x2066 && letter <= 0x2069);
  return is_control || turns_text;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    utf8proc_int32_t letter = 0;
    const auto read = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &letter);
    const std::string_view bytes = text.substr(0, read > 0 ? static_cast<std::size_t>(read) : 1);
    if (read > 0 && !is_acted_on(letter)) {
      result += bytes;
    } else {
      for (const char byte : bytes) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(bytes.size());
  }
  return result;
}

}  // namespace lockstep::cli
