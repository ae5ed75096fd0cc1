// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/duration.h"

#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {

double parse_duration(std::string_view flag, const std::string& text) {
  static const std::map<std::string_view, double> units = {{"ms", 1e-3}, {"s", 1},    {"", 1},
                                                           {"m", 60},    {"min", 60}, {"h", 3600}};
  constexpr double kLeast = 1e-3, kMost = 365.0 * 24 * 3600;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const auto unit = units.find(std::string_view(end, text.data() + text.size()));
  const double seconds = error == std::errc() && unit != units.end() ? number * unit->second : 0;
  if (!std::isfinite(seconds) || seconds < kLeast || seconds > kMost) {
    throw UsageError(fmt::format("{} is '{}': expected a time such as 500ms, 20s, 10m or 1h", flag, text));
  }
  return seconds;
}

}  // namespace lockstep::cli
