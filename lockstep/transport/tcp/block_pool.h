// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/base/bytes.h"

namespace lockstep::transport::tcp {

class BlockPool;

// Memory of one pool's block size, which goes back to its pool, which must outlive it; or of any size,
// without a pool.
class Block {
 public:
  Block() = default;
  Block(std::unique_ptr<std::byte[]> memory, BlockPool* pool) : memory_(std::move(memory)), pool_(pool) {}
  explicit Block(std::size_t bytes) : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}
  Block(Block&&) noexcept = default;
  Block& operator=(Block&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~Block();

  std::byte* data() const { return memory_.get(); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  BlockPool* pool_ = nullptr;
};

// Keeps blocks for reuse, the latest given back first, for it is the one still in the cache.
class BlockPool {
 public:
  BlockPool(std::size_t block_bytes, std::size_t most_kept)
      : block_bytes_(block_bytes), most_kept_(most_kept) {}

  Block take() {
    if (kept_.empty()) return {std::make_unique_for_overwrite<std::byte[]>(block_bytes_), this};
    Block block(std::move(kept_.back()), this);
    kept_.pop_back();
    return block;
  }

 private:
  friend class Block;
  void give_back(std::unique_ptr<std::byte[]> memory) {
    if (kept_.size() < most_kept_) kept_.push_back(std::move(memory));
  }

  std::size_t block_bytes_;
  std::size_t most_kept_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

inline Block::~Block() {
  if (memory_ != nullptr && pool_ != nullptr) pool_->give_back(std::move(memory_));
}

// The two sizes that receivers need.
struct BlockPools {
  BlockPool small;     // kEagerBytes
  BlockPool segments;  // kSegmentBytes
};

}  // namespace lockstep::transport::tcp
