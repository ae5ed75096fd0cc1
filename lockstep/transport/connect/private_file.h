// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::transport {

// The content of a file that only its owner may read or write. `what` names it in errors ("secret file").
// UsageError when it is missing, not a regular file, open to group or others (says: chmod 600), or longer
// than `max_bytes`.
std::string read_private_file(const std::filesystem::path& path, std::string_view what,
                              std::size_t max_bytes);

}  // namespace lockstep::transport
