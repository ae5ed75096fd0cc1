// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lockstep::train {

namespace {

// Up to an eighth more. What of a buffer is never touched takes no memory.
std::size_t rounded_up(std::size_t bytes) {
  const std::size_t unit = std::max<std::size_t>(4096, std::bit_floor(bytes) / 8);
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

comm::Buffer BufferPool::take(std::size_t bytes) {
  const std::size_t size = rounded_up(bytes);
  std::vector<comm::Buffer>& free = free_[size];
  if (free.empty()) return communicator_.allocate(size);
  comm::Buffer buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

void BufferPool::give_back(comm::Buffer&& buffer) {
  free_[buffer.bytes().size()].push_back(std::move(buffer));
}

}  // namespace lockstep::train
