// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradients.h"

#include <algorithm>
#include <cstring>

#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::train {
namespace {

// Elements; shares begin where lines of a cache do.
std::size_t room_for(const Range& share) {
  constexpr std::size_t kLine = 64 / sizeof(float);
  return (share.size() + kLine - 1) / kLine * kLine;
}

}  // namespace

GradientSlots::GradientSlots(const Holding& holding, BufferPool& pool, const Weights& weights)
    : holding_(holding), pool_(pool), weights_(weights) {
  if (!holding.shards_gradients) return;
  std::size_t elements = 0;
  for (const Range& own : holding.partition.own) elements += room_for(own);
  const std::size_t bytes = elements * sizeof(float);
  const bool peers_read = weights.journal() != nullptr;
  if (peers_read) {
    registered_ = pool.take(bytes);
  } else {
    own_ = LargeMemory(bytes);
  }
  auto* next = reinterpret_cast<float*>((peers_read ? registered_.bytes() : own_.bytes()).data());
  for (const Range& own : holding.partition.own) {
    shares_.emplace_back(next, own.size());
    next += room_for(own);
  }
}

void GradientSlots::grow(int slots) {
  while (slots_.size() < static_cast<std::size_t>(slots)) {
    Slot slot = {std::make_unique<HeldMemory>(holding_, at::kFloat, holding_.shards_gradients, pool_),
                 nullptr};
    HeldMemory& memory = *slot.memory;
    // What fills up chunks and the last bucket is added and sent like gradients; it must be finite.
    if (!holding_.shards_gradients)
      clear(std::span(reinterpret_cast<float*>(memory.bytes({0, holding_.partition.elements}).data()),
                      holding_.partition.elements));
    slot.parameters = std::make_unique<model::Parameters>(
        holding_.layout, [&](const model::Place& place) { return weights_.view(place); },
        [&](const model::Place& place) { return memory.view(place); });
    slots_.push_back(std::move(slot));
  }
}

std::span<float> GradientSlots::floats(int slot, Range elements) const {
  return {reinterpret_cast<float*>(memory(slot).bytes(elements).data()), elements.size()};
}

void GradientSlots::clear(std::span<float> values) const {
  kernels::for_each_block(values.size(), [&](kernels::Block block) {
    std::memset(values.data() + block.first, 0, block.count * sizeof(float));
  });
}

void GradientSlots::clear(int slot, std::size_t chunk) {
  const std::vector<Bucket>& buckets = holding_.partition.buckets;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    if (!overlap(buckets[bucket].elements, holding_.layout.chunks()[chunk])) continue;
    memory(slot).acquire(bucket);
    clear(floats(slot, buckets[bucket].elements));
  }
}

void GradientSlots::clear_borrowed(int slot, Range elements) {
  clear(floats(slot, elements));
}

void GradientSlots::merge(int into, int from, std::size_t bucket) {
  const Range elements = holding_.partition.buckets[bucket].elements;
  const std::span<float> lower = floats(into, elements);
  const std::span<float> upper = floats(from, elements);
  kernels::for_each_block(lower.size(), [&](kernels::Block block) {
    auto* sum = reinterpret_cast<std::byte*>(lower.data() + block.first);
    const kernels::Operand operands[] = {
        {.data = sum}, {.data = reinterpret_cast<const std::byte*>(upper.data() + block.first), .merges = 1}};
    kernels::combine({.dtype = DType::fp32}, operands, {&sum, 1}, block.count);
  });
  memory(from).release(bucket);
}

void GradientSlots::acquire(int slot, std::size_t bucket) {
  memory(slot).acquire(bucket);
}

void GradientSlots::keep_share(int slot, std::size_t bucket) {
  if (!holding_.shards_gradients) return;
  std::ranges::copy(floats(slot, holding_.partition.own[bucket]), shares_[bucket].begin());
  for (const Slot& other : slots_) {
    if (other.memory->is_there(bucket)) other.memory->release(bucket);
  }
}

std::span<const float> GradientSlots::share(int slot, std::size_t bucket) const {
  if (!holding_.shards_gradients) return floats(slot, holding_.partition.own[bucket]);
  return shares_[bucket];
}

std::span<float> GradientSlots::share(int slot, std::size_t bucket) {
  if (!holding_.shards_gradients) return floats(slot, holding_.partition.own[bucket]);
  return shares_[bucket];
}

}  // namespace lockstep::train
