// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/model/parameters.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// The slots of a step program: buffers for the gradients of all held parameters, in memory that the ranks of
// this host read in place.
class GradientSlots {
 public:
  // `values` are the flat parameters that blocks compute with. The holding must outlive this.
  GradientSlots(const Holding& holding, const at::Tensor& values);

  // Makes more of them, if there are fewer.
  void grow(int slots);

  // The parameters, with gradients going to this slot.
  const model::Parameters& parameters(int slot) const {
    return *slots_[static_cast<std::size_t>(slot)].parameters;
  }
  std::span<float> floats(int slot, Range elements) const;
  Bytes bytes(int slot, Range elements) const { return std::as_writable_bytes(floats(slot, elements)); }

  void clear(int slot, Range elements);
  // into += from, for these elements.
  void merge(int into, int from, Range elements) const;

 private:
  struct Slot {
    comm::Buffer memory;
    std::unique_ptr<model::Parameters> parameters;
  };
  const Holding& holding_;
  at::Tensor values_;
  std::vector<Slot> slots_;
};

}  // namespace lockstep::train
