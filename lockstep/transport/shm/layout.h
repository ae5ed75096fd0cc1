// SPDX-License-Identifier: Apache-2.0
//
// The control segment of a rank: what its peers see of it, then its words of every channel. Only the owner
// writes; a peer maps the first part and the row that belongs to it, to read. Untouched parts take no memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/base/rank.h"
#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/memory/notices.h"
#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {

// Raised whenever a word changes its meaning.
inline constexpr std::uint32_t kSharedLayoutVersion = 2;

// The largest page size of the machines we know.
inline constexpr std::size_t kLayoutAlignment = std::size_t{64} * 1024;

constexpr std::size_t align_layout(std::size_t bytes) {
  return (bytes + kLayoutAlignment - 1) / kLayoutAlignment * kLayoutAlignment;
}

inline constexpr std::size_t kControlBytes = align_layout(sizeof(ControlBlock));
inline constexpr std::size_t kRowBytes = align_layout(kMaxStreams * sizeof(ChannelBlock));

constexpr std::size_t row_offset(Rank peer) {
  return kControlBytes + static_cast<std::size_t>(peer) * kRowBytes;
}

constexpr std::size_t control_segment_bytes(int world) {
  return row_offset(world);
}

}  // namespace lockstep::transport
