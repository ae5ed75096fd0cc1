// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lockstep/base/bytes.h"

namespace lockstep::transport {

// How memory is named between two ranks: each counts its own segments.
struct Place {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
};

// Which memory of ours a peer can reach, and which of the peer's we can.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;

  // The name of our memory for the peer; empty when the peer cannot reach all of it.
  virtual std::optional<Place> expose(ConstBytes memory) = 0;

  // The peer's memory that it calls `place`. DataError when `bytes` bytes do not lie inside a segment of the
  // peer's.
  virtual std::byte* resolve(Place place, std::size_t bytes) = 0;
};

}  // namespace lockstep::transport
