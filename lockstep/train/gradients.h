// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/large_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/model/parameters.h"
#include "lockstep/train/held_memory.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// The slots of a step program: buffers for the gradients of all held parameters, in memory that the ranks of
// this host read in place. When gradients are shared out, those of a chunk are there from the first addition
// to them until their sum is kept. What is kept of it peers read as well if the weights have a journal: they
// may have to end an update with it.
class GradientSlots {
 public:
  // Everything referred to must outlive this.
  GradientSlots(const Holding& holding, BufferPool& pool, const Weights& weights);

  // Makes more of them, if there are fewer.
  void grow(int slots);

  // The parameters, with gradients going to this slot.
  const model::Parameters& parameters(int slot) const {
    return *slots_[static_cast<std::size_t>(slot)].parameters;
  }
  // Inside a bucket, or a borrowed head.
  std::span<float> floats(int slot, Range elements) const;
  Bytes bytes(int slot, Range elements) const { return std::as_writable_bytes(floats(slot, elements)); }

  // All of a chunk; of what is borrowed.
  void clear(int slot, std::size_t chunk);
  void clear_borrowed(int slot, Range elements);
  // into += from, for a bucket.
  void merge(int into, int from, std::size_t bucket);

  // Memory for a bucket of a slot that no lane has cleared.
  void acquire(int slot, std::size_t bucket);
  // Keeps this rank's share of the sum that is in the slot.
  void keep_share(int slot, std::size_t bucket);
  // The share that was kept, or that is in the slot of the sum.
  std::span<const float> share(int slot, std::size_t bucket) const;
  std::span<float> share(int slot, std::size_t bucket);

 private:
  struct Slot {
    std::unique_ptr<HeldMemory> memory;
    std::unique_ptr<model::Parameters> parameters;
  };
  HeldMemory& memory(int slot) const { return *slots_[static_cast<std::size_t>(slot)].memory; }
  void clear(std::span<float> values) const;

  const Holding& holding_;
  BufferPool& pool_;
  const Weights& weights_;
  std::vector<Slot> slots_;
  // When gradients are shared out: by bucket, in one of these.
  std::vector<std::span<float>> shares_;
  comm::Buffer registered_;
  LargeMemory own_;
};

}  // namespace lockstep::train
