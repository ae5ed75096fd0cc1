// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lockstep::checkpoint {

// DataError, naming the file, when the text is not a JSON object or is nested deeper than 64.
nlohmann::json parse_object(std::string_view text, const std::string& name);

// The text of a file of at most 64 MiB. UsageError when it cannot be read, DataError when it is longer.
std::string text_of_file(const std::string& path);

}  // namespace lockstep::checkpoint
