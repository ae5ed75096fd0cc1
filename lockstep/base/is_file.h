// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lockstep {

// A regular file is there, or a link to one; what cannot be looked at is none.
inline bool is_file(const std::filesystem::path& path) {
  std::error_code not_there;
  return std::filesystem::is_regular_file(path, not_there);
}

}  // namespace lockstep
