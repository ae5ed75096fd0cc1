// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/text.h"

#include <charconv>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::size_t kLongestQuote = 64;
constexpr std::size_t kMostEntries = 16;

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

std::string quote(std::string_view value) {
  std::string result = "'";
  for (char c : value.substr(0, kLongestQuote)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
  }
  return result + (value.size() > kLongestQuote ? "...'" : "'");
}

std::uint64_t parse_number(const NamedText& setting, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const char* end = setting.text.data() + setting.text.size();
  const auto [stop, error] = std::from_chars(setting.text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) {
    throw UsageError(fmt::format("{} is {}: expected a whole number from {} to {}", setting.name,
                                 quote(setting.text), least, most));
  }
  return value;
}

bool is_plain(std::string_view text, std::string_view others) {
  for (char c : text) {
    if (!is_alphanumeric(c) && others.find(c) == std::string_view::npos) return false;
  }
  return true;
}

std::string list_of(std::span<const int> numbers) {
  std::string result;
  std::size_t entries = 0;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last == first + 1) last = first;
    if (entries == kMostEntries) return fmt::format("{} and {} more", result, numbers.size() - first);
    if (entries++ > 0) result += ", ";
    result += last == first ? fmt::format("{}", numbers[first])
                            : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return result;
}

}  // namespace lockstep::rendezvous
