// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/buffer_pool.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// Registered memory for one value of every element that a rank holds: all of it all the time, or that of a
// chunk only while it is wanted. Tensors that view it stay the same throughout; they must be used only while
// their chunk is there.
class HeldMemory {
 public:
  // Everything referred to must outlive this.
  HeldMemory(const Holding& holding, at::ScalarType type, bool comes_and_goes, BufferPool& pool);
  HeldMemory(HeldMemory&&) = default;
  HeldMemory& operator=(HeldMemory&&) = delete;
  HeldMemory(const HeldMemory&) = delete;
  ~HeldMemory();

  at::ScalarType type() const { return type_; }

  // The parameter's elements, flat.
  at::Tensor view(const model::Place& place) const;
  // Inside one bucket that is there, or a borrowed head.
  Bytes bytes(Range elements) const;

  // Of a bucket, which is a chunk when memory comes and goes, and is always there otherwise. What memory
  // comes with is undefined.
  bool is_there(std::size_t bucket) const;
  void acquire(std::size_t bucket);
  void release(std::size_t bucket);

 private:
  // A piece of the elements.
  struct Piece {
    Range elements;
    std::size_t capacity = 0;  // elements that its memory has room for
    at::Tensor tensor;
    std::optional<comm::Buffer> memory;
  };
  std::size_t piece_of(Range elements) const;
  std::size_t piece_of_bucket(std::size_t bucket) const;
  void attach(Piece& piece);

  const Holding& holding_;
  at::ScalarType type_;
  bool comes_and_goes_;
  BufferPool& pool_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep::train
