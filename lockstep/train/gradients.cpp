// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradients.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/from_blob.h>

#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::train {

GradientSlots::GradientSlots(const Holding& holding, const at::Tensor& values)
    : holding_(holding), values_(values) {}

void GradientSlots::grow(int slots) {
  const model::FlatLayout& layout = holding_.layout;
  while (slots_.size() < static_cast<std::size_t>(slots)) {
    Slot slot = {holding_.groups.world.allocate(holding_.partition.elements * sizeof(float)), nullptr};
    // What fills up chunks and the last bucket is added and sent like gradients; it must be finite.
    std::ranges::fill(slot.memory.as<float>(), 0.0F);
    const at::Tensor gradients = at::from_blob(slot.memory.bytes().data(), {layout.elements()}, at::kFloat);
    slot.parameters = std::make_unique<model::Parameters>(layout, values_, gradients);
    slots_.push_back(std::move(slot));
  }
}

std::span<float> GradientSlots::floats(int slot, Range elements) const {
  return slots_[static_cast<std::size_t>(slot)].memory.as<float>().subspan(elements.begin, elements.size());
}

void GradientSlots::clear(int slot, Range elements) {
  const std::span<float> all = floats(slot, elements);
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
