// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace lockstep::data {

// What a JSON parser's exception says, without the name of its class: "parse error at line 1, column 2: ...".
inline std::string json_reason(const std::exception& error) {
  const std::string_view text = error.what();
  const std::size_t name_end = text.starts_with("[json.exception") ? text.find("] ") : std::string_view::npos;
  return std::string(name_end == std::string_view::npos ? text : text.substr(name_end + 2));
}

}  // namespace lockstep::data
