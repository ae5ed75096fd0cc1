// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lockstep::checkpoint {

// DataError, naming the file, when the text is not a JSON object or is nested deeper than 64.
nlohmann::json parse_object(std::string_view text, const std::string& name);

// Lists of tensors and texts of tokenizers; the description of a model.
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// The text of a file. UsageError when it cannot be read, DataError when it has more bytes than `limit`.
std::string text_of_file(const std::string& path, std::size_t limit = kMaxTextBytes);

}  // namespace lockstep::checkpoint
