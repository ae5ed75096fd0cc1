// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/model/parameters.h"
#include "lockstep/train/buckets.h"

namespace lockstep::train {

// The slots of a step program: buffers for the gradients of all parameters, in memory that the ranks of this
// host read in place.
class GradientSlots {
 public:
  // `values` are the flat parameters that blocks compute with.
  GradientSlots(const comm::Communicator& communicator, const model::FlatLayout& layout,
                const at::Tensor& values, int slots);

  // The parameters, with gradients going to this slot.
  const model::Parameters& parameters(int slot) const {
    return *slots_[static_cast<std::size_t>(slot)].parameters;
  }
  std::span<float> floats(int slot) const;
  std::span<float> floats(int slot, const Bucket& bucket) const;
  Bytes bytes(int slot, const Bucket& bucket) const;

  void clear(int slot);
  // into += from, for one bucket.
  void merge(int into, int from, const Bucket& bucket);

 private:
  struct Slot {
    comm::Buffer memory;
    std::unique_ptr<model::Parameters> parameters;
  };
  std::vector<Slot> slots_;
};

}  // namespace lockstep::train
