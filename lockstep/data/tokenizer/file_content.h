// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::data {

// All bytes of a tokenizer's file. UsageError when it cannot be read, DataError when it is too large for one.
std::string tokenizer_content(const std::string& path);

}  // namespace lockstep::data
