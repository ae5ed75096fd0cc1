// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradients.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/from_blob.h>

#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::train {

GradientSlots::GradientSlots(const comm::Communicator& communicator, const model::FlatLayout& layout,
                             const Partition& partition, const at::Tensor& values)
    : communicator_(communicator), layout_(layout), partition_(partition), values_(values) {}

void GradientSlots::grow(int slots) {
  while (slots_.size() < static_cast<std::size_t>(slots)) {
    Slot slot = {communicator_.allocate(partition_.elements * sizeof(float)), nullptr};
    // What fills up the last bucket is added and sent like gradients; it must be finite.
    std::ranges::fill(slot.memory.as<float>().subspan(static_cast<std::size_t>(layout_.elements())), 0.0F);
    const at::Tensor gradients = at::from_blob(slot.memory.bytes().data(), {layout_.elements()}, at::kFloat);
    slot.parameters = std::make_unique<model::Parameters>(layout_, values_, gradients);
    slots_.push_back(std::move(slot));
  }
}

std::span<float> GradientSlots::floats(int slot, Range elements) const {
  return slots_[static_cast<std::size_t>(slot)].memory.as<float>().subspan(elements.begin, elements.size());
}

void GradientSlots::clear(int slot) {
  const std::span<float> all = floats(slot, {0, static_cast<std::size_t>(layout_.elements())});
  kernels::for_each_block(all.size(), [&](kernels::Block block) {
    std::memset(all.data() + block.first, 0, block.count * sizeof(float));
  });
}

void GradientSlots::merge(int into, int from, Range elements) const {
  const std::span<float> lower = floats(into, elements);
  const std::span<float> upper = floats(from, elements);
  kernels::for_each_block(lower.size(), [&](kernels::Block block) {
    auto* sum = reinterpret_cast<std::byte*>(lower.data() + block.first);
    const kernels::Operand operands[] = {
        {.data = sum}, {.data = reinterpret_cast<const std::byte*>(upper.data() + block.first), .merges = 1}};
    kernels::combine({.dtype = DType::fp32}, operands, {&sum, 1}, block.count);
  });
}

}  // namespace lockstep::train
