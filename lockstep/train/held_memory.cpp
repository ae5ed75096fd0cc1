// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/held_memory.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "lockstep/base/error.h"
#include "lockstep/plan/buckets.h"

namespace lockstep::train {

HeldMemory::HeldMemory(const Holding& holding, at::ScalarType type, bool comes_and_goes, BufferPool& pool)
    : holding_(holding), type_(type), comes_and_goes_(comes_and_goes), pool_(pool) {
  const auto add = [&](Range elements, std::size_t capacity) {
    pieces_.push_back({.elements = elements,
                       .capacity = capacity,
                       .tensor = at::from_blob(nullptr, {static_cast<std::int64_t>(elements.size())}, type),
                       .memory = std::nullopt});
  };
  const Partition& partition = holding.partition;
  if (!comes_and_goes) {
    add({0, partition.elements}, partition.elements);
    attach(pieces_.front());
    return;
  }
  if (holding.layout.borrows_head()) {
    const Range head = {0, holding.layout.owned().begin};
    add(head, head.size());
    attach(pieces_.front());
  }
  std::vector<std::uint64_t> sizes;
  for (const Bucket& bucket : partition.buckets) sizes.push_back(bucket.elements.size());
  for (const Bucket& bucket : partition.buckets) {
    add(bucket.elements, plan::room_for(bucket.elements.size(), sizes));
  }
}

HeldMemory::~HeldMemory() {
  for (Piece& piece : pieces_) {
    if (piece.memory) pool_.give_back(*std::exchange(piece.memory, std::nullopt));
  }
}

void HeldMemory::attach(Piece& piece) {
  piece.memory = pool_.take(piece.capacity * c10::elementSize(type_));
  piece.tensor.storage().set_data_ptr_noswap({piece.memory->bytes().data(), c10::Device(c10::kCPU)});
}

std::size_t HeldMemory::piece_of(Range elements) const {
  const auto found =
      std::ranges::find_if(pieces_, [&](const Piece& piece) { return piece.elements.contains(elements); });
  LOCKSTEP_CHECK(found != pieces_.end(), "elements that are not held, or of several chunks");
  return static_cast<std::size_t>(found - pieces_.begin());
}

std::size_t HeldMemory::piece_of_bucket(std::size_t bucket) const {
  return piece_of(holding_.partition.buckets[bucket].elements);
}

at::Tensor HeldMemory::view(const model::Place& place) const {
  const Piece& piece = pieces_[piece_of(elements_of(place))];
  return piece.tensor.narrow(0, place.first - static_cast<std::int64_t>(piece.elements.begin), place.count);
}

Bytes HeldMemory::bytes(Range elements) const {
  const Piece& piece = pieces_[piece_of(elements)];
  LOCKSTEP_CHECK(piece.memory.has_value(), "memory is used that is not there");
  const std::size_t size = c10::elementSize(type_);
  return piece.memory->bytes().subspan((elements.begin - piece.elements.begin) * size,
                                       elements.size() * size);
}

bool HeldMemory::is_there(std::size_t bucket) const {
  return pieces_[piece_of_bucket(bucket)].memory.has_value();
}

void HeldMemory::acquire(std::size_t bucket) {
  if (!is_there(bucket)) attach(pieces_[piece_of_bucket(bucket)]);
}

void HeldMemory::release(std::size_t bucket) {
  if (!comes_and_goes_) return;
  Piece& piece = pieces_[piece_of_bucket(bucket)];
  LOCKSTEP_CHECK(piece.memory.has_value(), "memory is given back that is not there");
  pool_.give_back(*std::exchange(piece.memory, std::nullopt));
  piece.tensor.storage().set_data_ptr_noswap({nullptr, c10::Device(c10::kCPU)});
}

}  // namespace lockstep::train
