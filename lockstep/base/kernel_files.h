// SPDX-License-Identifier: Apache-2.0
//
// The small text files in which the kernel tells about itself. A file that is not there is like an empty one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

std::string first_line(const std::filesystem::path& path);

// The number that the text begins with; none for "max".
std::optional<std::uint64_t> number_in(const std::string& text);

// The number after a name at the beginning of a line: "MemTotal:  1024 kB" gives 1024 for "MemTotal:".
std::optional<std::uint64_t> number_after(const std::filesystem::path& path, const std::string& name);

// The folders of this process's control group and of those above it, in which limits may stand, below `root`.
std::vector<std::filesystem::path> control_groups(const std::filesystem::path& root = "/");  // version 2
std::vector<std::filesystem::path> memory_control_groups(
    const std::filesystem::path& root = "/");  // version 1

}  // namespace lockstep
