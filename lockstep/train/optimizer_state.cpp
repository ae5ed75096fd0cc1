// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/optimizer_state.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

// Where buckets begin in the file, so that no two share a page, and in registered memory.
constexpr std::uint64_t kPage = 4096;

// Closed buckets that stay in memory: while one is updated, the next is read and the last ones are written.
constexpr std::size_t kClosed = 3;

std::size_t master_bytes_of(DType dtype) {
  if (dtype == DType::bf16) return sizeof(std::uint16_t);
  return dtype == DType::fp16 ? sizeof(float) : 0;
}

}  // namespace

OptimizerState::OptimizerState(const Partition& partition, const Options& options)
    : moments_(static_cast<std::size_t>(options.moments)),
      master_bytes_(master_bytes_of(options.dtype)),
      bytes_per_element_(moments_ * sizeof(float) + master_bytes_) {
  std::uint64_t end = 0;
  for (const Range& own : partition.own) {
    places_.push_back({.elements = own.size(), .offset = end});
    end += (bytes_of(places_.back()) + kPage - 1) / kPage * kPage;
  }
  if (!options.folder.empty()) {
    file_.emplace(options.folder, std::max(end, kPage));
    return;
  }
  if (options.registered != nullptr) {
    registered_ = options.registered->take(end);
    std::ranges::fill(registered_.bytes(), std::byte{0});
    return;
  }
  for (Place& place : places_) place.memory.resize(bytes_of(place));
}

OptimizerState::~OptimizerState() {
  // Nobody wants to know any more whether the last writes went well.
  for (Place& place : places_) {
    try {
      settle(place);
    } catch (const DataError&) {
      place.under_way.reset();
    }
  }
}

void OptimizerState::settle(Place& place) {
  if (place.under_way) file_->wait(*std::exchange(place.under_way, std::nullopt));
}

// Of the bucket that was closed first, when there are enough.
std::vector<std::byte> OptimizerState::take_memory(std::size_t bytes) {
  std::vector<std::byte> memory;
  if (closed_.size() >= kClosed) {
    Place& oldest = places_[closed_.front()];
    closed_.pop_front();
    settle(oldest);
    memory = std::exchange(oldest.memory, {});
  }
  memory.resize(bytes);
  return memory;
}

void OptimizerState::fetch(Place& place) {
  place.memory = take_memory(bytes_of(place));
  place.under_way = file_->read(place.offset, place.memory);
}

void OptimizerState::read_ahead(std::size_t bucket) {
  Place& place = places_[bucket];
  if (!file_ || place.is_open || !place.memory.empty() || place.elements == 0) return;
  fetch(place);
}

StatePart OptimizerState::open(std::size_t bucket) {
  Place& place = places_[bucket];
  LOCKSTEP_CHECK(!std::exchange(place.is_open, true), "a bucket is opened twice");
  if (file_ && place.elements > 0) {
    std::erase(closed_, bucket);
    if (place.memory.empty()) fetch(place);
    settle(place);
  }
  StatePart part;
  std::byte* next = place.memory.data();
  if (!registered_.bytes().empty()) next = registered_.bytes().data() + place.offset;
  for (std::size_t i = 0; i < moments_; ++i, next += place.elements * sizeof(float)) {
    part.moments.emplace_back(reinterpret_cast<float*>(next), place.elements);
  }
  if (master_bytes_ == sizeof(float)) part.master = {reinterpret_cast<float*>(next), place.elements};
  if (master_bytes_ == sizeof(std::uint16_t)) {
    part.lower = {reinterpret_cast<std::uint16_t*>(next), place.elements};
  }
  return part;
}

void OptimizerState::close(std::size_t bucket) {
  Place& place = places_[bucket];
  place.is_open = false;
  if (!file_ || place.elements == 0) return;
  place.under_way = file_->write(place.offset, place.memory);
  closed_.push_back(bucket);
}

}  // namespace lockstep::train
