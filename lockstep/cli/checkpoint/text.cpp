// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/checkpoint/text.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::cli {

std::string rounded_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return fmt::format("{:.3g} {}", number, kUnits[unit]);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace lockstep::cli
