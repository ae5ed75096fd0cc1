// SPDX-License-Identifier: Apache-2.0
//
// What fuzz targets share. A target takes bytes apart with Input, calls a parser, lets only the errors of the
// parser's contract pass, and requires what must hold of whatever it accepted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/bytes.h"

namespace lockstep::fuzz {

// Ends the process in a way that libFuzzer reports together with the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// True when the parser accepted, false when it refused with one of `Refusals`; anything else ends the
// process.
template <typename... Refusals, typename Parse>
bool accepts(Parse&& parse) {
  try {
    parse();
    return true;
  } catch (const std::exception& error) {
    const bool allowed = ((dynamic_cast<const Refusals*>(&error) != nullptr) || ...);
    if (!allowed) throw;
    require(*error.what() != '\0', "a refusal says why");
    return false;
  }
}

// Reads the input from its begin; past its end everything is zero or empty.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : bytes_(reinterpret_cast<const std::byte*>(data), size) {}

  template <typename T>
  T number() {
    T value{};
    const ConstBytes from = take(sizeof(T));
    std::memcpy(&value, from.data(), from.size());
    return value;
  }

  ConstBytes take(std::size_t most) {
    const ConstBytes taken = bytes_.first(std::min(most, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

  // Up to the next newline, which is taken but not returned.
  std::string_view line() {
    const std::string_view text = as_text(bytes_);
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(std::min(end + 1, text.size()));
    return text.substr(0, end);
  }

  // All that are left: a command line, one argument in each.
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    while (!empty()) all.emplace_back(line());
    return all;
  }

  std::string_view rest() { return as_text(take(bytes_.size())); }
  bool empty() const { return bytes_.empty(); }

 private:
  static std::string_view as_text(ConstBytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  ConstBytes bytes_;
};

}  // namespace lockstep::fuzz

// The function that libFuzzer calls; its result must be 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
