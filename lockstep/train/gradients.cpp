// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradients.h"

#include <cstring>

#include <ATen/ops/from_blob.h>

#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::train {

GradientSlots::GradientSlots(const comm::Communicator& communicator, const model::FlatLayout& layout,
                             const at::Tensor& values, int slots) {
  const std::size_t bytes = static_cast<std::size_t>(layout.elements()) * sizeof(float);
  for (int i = 0; i < slots; ++i) {
    Slot slot = {communicator.allocate(bytes), nullptr};
    const at::Tensor gradients = at::from_blob(slot.memory.bytes().data(), {layout.elements()}, at::kFloat);
    slot.parameters = std::make_unique<model::Parameters>(layout, values, gradients);
    slots_.push_back(std::move(slot));
  }
}

std::span<float> GradientSlots::floats(int slot) const {
  const Bytes memory = slots_[static_cast<std::size_t>(slot)].memory.bytes();
  return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
}

std::span<float> GradientSlots::floats(int slot, const Bucket& bucket) const {
  return floats(slot).subspan(static_cast<std::size_t>(bucket.first), static_cast<std::size_t>(bucket.count));
}

Bytes GradientSlots::bytes(int slot, const Bucket& bucket) const {
  return std::as_writable_bytes(floats(slot, bucket));
}

void GradientSlots::clear(int slot) {
  const std::span<float> all = floats(slot);
  kernels::for_each_block(all.size(), [&](kernels::Block block) {
    std::memset(all.data() + block.first, 0, block.count * sizeof(float));
  });
}

void GradientSlots::merge(int into, int from, const Bucket& bucket) {
  const std::span<float> lower = floats(into, bucket);
  const std::span<float> upper = floats(from, bucket);
  kernels::for_each_block(lower.size(), [&](kernels::Block block) {
    auto* sum = reinterpret_cast<std::byte*>(lower.data() + block.first);
    const kernels::Operand operands[] = {
        {.data = sum}, {.data = reinterpret_cast<const std::byte*>(upper.data() + block.first), .merges = 1}};
    kernels::combine({.dtype = DType::fp32}, operands, {&sum, 1}, block.count);
  });
}

}  // namespace lockstep::train
