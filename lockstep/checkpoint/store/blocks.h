// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/base/input_file.h"

namespace lockstep::checkpoint {

// Large enough for system calls not to matter, small enough to stay in a cache between them.
inline constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

// Called on the way through much work, before each block and before each wait for the disk. What it raises
// ends the work; it is no lockstep::Error, which would say that a file is bad.
using BetweenBlocks = std::function<void()>;

// Calls body(bytes) for `bytes` bytes of the file from `offset` on, in blocks that all but the last have
// kBlockBytes, aligned for any type. DataError as of InputFile.
template <typename Body>
void each_block(const InputFile& file, std::uint64_t offset, std::uint64_t bytes, const Body& body) {
  std::vector<std::byte> memory(std::min<std::uint64_t>(bytes, kBlockBytes));
  for (std::uint64_t done = 0; done < bytes;) {
    const Bytes block = Bytes(memory).first(std::min<std::uint64_t>(memory.size(), bytes - done));
    file.read(offset + done, block);
    body(ConstBytes(block));
    done += block.size();
  }
}

}  // namespace lockstep::checkpoint
