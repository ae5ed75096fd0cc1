// SPDX-License-Identifier: Apache-2.0
//
// Two ways to copy, because two cores may be near or far apart. Through the caches each line that the other
// core has read must first be taken back from it: quick between cores that share a cache, slow between others
// (measured on an EPYC: 5 and 30 ns per line). Streaming stores go past the caches: slower for short messages
// between near cores, several times faster between far ones, and faster for long messages everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"

namespace lockstep::transport {

// Copies past the caches; the bytes are visible to whoever sees a later store. `into` holds bytes.size()
// bytes.
void copy_streaming(std::byte* into, ConstBytes bytes);

// Copies into memory that a peer has read before and will read next, the better way: long pieces are
// streamed; for short ones a copy through the caches is timed now and then, which tells how far the peer is.
class PeerCopy {
 public:
  void run(std::byte* into, ConstBytes bytes);

  // To be called when what run() copied has left this core (after a full fence).
  void settle() {
    if (timed_lines_ != 0) [[unlikely]]
      judge();
  }

 private:
  void judge();

  std::uint32_t until_timed_ = 0;
  std::size_t timed_lines_ = 0;  // of the copy that is being timed; 0: none is
  Clock::time_point started_{};
  bool far_ = false;
};

}  // namespace lockstep::transport
