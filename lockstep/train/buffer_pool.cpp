// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/buffer_pool.h"

#include <utility>

namespace lockstep::train {

comm::Buffer BufferPool::take(std::size_t bytes) {
  std::vector<comm::Buffer>& free = free_[bytes];
  if (free.empty()) return communicator_.allocate(bytes);
  comm::Buffer buffer = std::move(free.back());
  free.pop_back();
  return buffer;
}

void BufferPool::give_back(comm::Buffer&& buffer) {
  free_[buffer.bytes().size()].push_back(std::move(buffer));
}

}  // namespace lockstep::train
