// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/arena.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/words.h"
#include "lockstep/transport/shm/segment.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kFirstSegment = std::size_t{1} << 20;
constexpr std::size_t kLargestStep = std::size_t{64} << 20;
// A block of this size has a segment of its own: the rest of a larger one would be memory that nobody uses.
constexpr std::size_t kLargeBlock = std::size_t{4} << 20;

}  // namespace

Bytes Arena::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    throw UsageError(
        fmt::format("cannot get {} bytes of shared memory: no address space is that large", bytes));
  }
  const std::size_t rounded = (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second >= rounded && (best == free_.end() || block->second < best->second)) best = block;
  }
  if (best == free_.end()) {
    grow(rounded);
    best = free_.find(segments_.back().memory.data());
  }
  return take(best, rounded).first(bytes);
}

// Only the rest of the block needs memory, so it comes first.
Bytes Arena::take(Blocks::iterator block, std::size_t bytes) {
  const auto [begin, size] = *block;
  if (size > bytes) free_.emplace(begin + bytes, size - bytes);
  block->second = bytes;
  used_.insert(free_.extract(block));
  return {begin, bytes};
}

// Later segments for small blocks are larger: few are enough for any amount.
void Arena::grow(std::size_t bytes) {
  if (segments_.size() == kMaxSegments) {
    throw UsageError(
        fmt::format("cannot get {} bytes of shared memory: {} segments are in use already; allocate fewer, "
                    "larger buffers",
                    bytes, kMaxSegments));
  }
  const std::size_t step =
      std::min(kLargestStep, kFirstSegment << std::min<std::size_t>(segments_.size(), 10));
  std::size_t size = whole_pages(bytes >= kLargeBlock ? bytes : std::max(bytes, step));
  Segment segment;
  try {
    segment.file = make_segment(size, Reserve::now);
  } catch (const UsageError&) {
    if (size == whole_pages(bytes)) throw;
    size = whole_pages(bytes);
    segment.file = make_segment(size, Reserve::now);
  }
  segment.memory = Mapping::of_file(segment.file.get(), 0, size, Mapping::Access::write_soon);
  // What needs memory comes first: without it nothing here may name a segment that is gone.
  Blocks whole = {{segment.memory.data(), segment.memory.size()}};
  segments_.reserve(segments_.size() + 1);
  by_address_.emplace(segment.memory.data(), segments());
  segments_.push_back(std::move(segment));
  free_.merge(whole);
}

void Arena::release(Bytes memory) {
  if (memory.empty()) return;
  const auto block = used_.find(memory.data());
  LOCKSTEP_CHECK(block != used_.end() && memory.size() <= block->second,
                 "released memory that was not allocated here");
  merge_free(used_.extract(block));
}

void Arena::merge_free(Blocks::node_type block) {
  std::byte* const begin = block.key();
  std::size_t& bytes = block.mapped();
  const std::uint32_t segment = *segment_of(begin);
  const auto joins = [&](std::byte* address) { return segment_of(address) == segment; };
  const auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + bytes && joins(next->first)) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto previous = std::prev(after);
    if (previous->first + previous->second == begin && joins(previous->first)) {
      previous->second += bytes;
      return;
    }
  }
  free_.insert(std::move(block));
}

std::optional<std::uint32_t> Arena::segment_of(const std::byte* address) const {
  const auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return std::nullopt;
  const auto [begin, index] = *std::prev(after);
  if (static_cast<std::size_t>(address - begin) >= segments_[index].memory.size()) return std::nullopt;
  return index;
}

std::optional<Place> Arena::locate(ConstBytes memory) const {
  const std::optional<std::uint32_t> segment = segment_of(memory.data());
  if (!segment) return std::nullopt;
  const Mapping& mapped = segments_[*segment].memory;
  const auto offset = static_cast<std::size_t>(memory.data() - mapped.data());
  if (memory.size() > mapped.size() - offset) return std::nullopt;
  return Place{.segment = *segment, .offset = offset};
}

}  // namespace lockstep::transport
