// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

// Seconds of "500ms", "20s", "1.5m", "2h", or of a number without a unit. UsageError, with the flag, for
// anything else, for less than a millisecond and for more than a year.
double parse_duration(std::string_view flag, const std::string& text);

}  // namespace lockstep::cli
