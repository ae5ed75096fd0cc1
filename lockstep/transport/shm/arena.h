// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/memory/address_space.h"
#include "lockstep/transport/memory/mapping.h"

namespace lockstep::transport {

// Registered memory of one rank: blocks cut from segments that peers map as well. Segments are added as
// needed and kept until the arena ends. All bookkeeping is private to the rank. Not thread-safe.
class Arena {
 public:
  // More than any sane program needs; a peer that announces more is refused.
  static constexpr std::uint32_t kMaxSegments = 4096;

  // Aligned to 64 bytes, zero-filled when never used before. UsageError with the amounts when there is no
  // room. Whatever it throws, be it std::bad_alloc, what was free stays free.
  Bytes allocate(std::size_t bytes);

  // Takes what allocate() returned. Needs no memory.
  void release(Bytes memory);

  // Where the memory lies, if all of it is in one segment.
  std::optional<Place> locate(ConstBytes memory) const;

  // For announcing segments to peers, in order.
  std::uint32_t segments() const { return static_cast<std::uint32_t>(segments_.size()); }
  int segment_fd(std::uint32_t segment) const { return segments_[segment].file.get(); }
  std::size_t segment_bytes(std::uint32_t segment) const { return segments_[segment].memory.size(); }

 private:
  struct Segment {
    Descriptor file;
    Mapping memory;
  };

  using Blocks = std::map<std::byte*, std::size_t>;  // by address, so that neighbours merge

  void grow(std::size_t bytes);
  Bytes take(Blocks::iterator block, std::size_t bytes);
  void merge_free(Blocks::node_type block);
  std::optional<std::uint32_t> segment_of(const std::byte* address) const;

  std::vector<Segment> segments_;
  std::map<const std::byte*, std::uint32_t> by_address_;  // first byte of each segment
  Blocks free_;
  Blocks used_;
};

}  // namespace lockstep::transport
