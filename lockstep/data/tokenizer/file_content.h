// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

// All bytes of a tokenizer's file. UsageError when it cannot be read, DataError when it is too large for one.
std::string tokenizer_content(const std::string& path);

// Whether these are all bytes of a file, which are not kept; false when it cannot be read.
bool has_content(const std::string& path, std::string_view content);

}  // namespace lockstep::data
