// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

namespace lockstep::cli {

using Json = nlohmann::ordered_json;

// JSON has no such numbers as a loss may be: they are written as texts.
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// What a command prints with --json.
inline std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::cli
