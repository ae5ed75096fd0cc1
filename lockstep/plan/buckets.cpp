// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/buckets.h"

#include <algorithm>

namespace lockstep::plan {

std::vector<schedule::Chunk> group_blocks(std::span<const std::int64_t> elements, std::int64_t enough) {
  std::vector<schedule::Chunk> groups;
  std::int64_t open = enough;
  for (std::size_t block = 0; block < elements.size(); ++block) {
    const auto number = static_cast<int>(block);
    // One without elements has nothing to wait for.
    if (open >= enough && (groups.empty() || elements[block] > 0)) {
      groups.push_back({number, number});
      open = 0;
    }
    groups.back().end_block = number + 1;
    open += elements[block];
  }
  return groups;
}

std::uint64_t room_for(std::uint64_t size, std::span<const std::uint64_t> sizes) {
  std::uint64_t most = size;
  for (const std::uint64_t other : sizes) {
    if (other <= size + size / 8) most = std::max(most, other);
  }
  return most;
}

}  // namespace lockstep::plan
