// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {

// Long runs are cut into blocks of this many elements, whatever the number of threads.
inline constexpr std::size_t kBlockElements = std::size_t{32} * 1024;

struct Block {
  std::size_t index = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

inline std::size_t block_count(std::size_t elements) {
  return (elements + kBlockElements - 1) / kBlockElements;
}

// Calls body(block) for all blocks, on any thread.
template <typename Body>
void for_each_block(std::size_t elements, Body body) {
  parallel_for(block_count(elements), [&](std::size_t index) {
    const std::size_t first = index * kBlockElements;
    body(Block{.index = index, .first = first, .count = std::min(kBlockElements, elements - first)});
  });
}

}  // namespace lockstep::kernels
