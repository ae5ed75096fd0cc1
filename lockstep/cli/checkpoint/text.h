// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

// "1.24 GiB", "812 B": three digits.
std::string rounded_size(std::uint64_t bytes);

// "[3, 4]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace lockstep::cli
