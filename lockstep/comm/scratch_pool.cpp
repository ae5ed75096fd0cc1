// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/scratch_pool.h"

#include <algorithm>
#include <bit>

namespace lockstep::comm {

Bytes ScratchPool::take(std::size_t bytes) {
  // Sizes are rounded up so that operations of similar sizes share blocks.
  const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
  const auto found =
      std::find_if(free_.rbegin(), free_.rend(), [wanted](Bytes memory) { return memory.size() == wanted; });
  if (found == free_.rend()) {
    if (free_.capacity() == allocated_) free_.reserve(2 * allocated_ + 1);
    const Bytes fresh = endpoint_.allocate(wanted);
    ++allocated_;
    return fresh;
  }
  const Bytes memory = *found;
  free_.erase(std::next(found).base());
  return memory;
}

}  // namespace lockstep::comm
