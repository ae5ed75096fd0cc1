// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/buckets.h"

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

}  // namespace lockstep::plan
