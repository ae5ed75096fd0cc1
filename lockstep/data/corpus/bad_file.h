// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::data {

// The one way in which files are refused: "kjv.idx at byte 34: ...".
[[noreturn]] inline void bad_file(const std::string& path, std::uint64_t offset, const std::string& why) {
  throw DataError(path + " at byte " + std::to_string(offset) + ": " + why);
}

}  // namespace lockstep::data
