// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// What a file says, without characters that a terminal would act on.
std::string printable(std::string_view text);

// "1.24 GiB", "812 B": three digits.
std::string rounded_size(std::uint64_t bytes);

// "[3, 4]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace lockstep::cli
