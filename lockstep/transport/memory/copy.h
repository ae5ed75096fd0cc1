// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "lockstep/base/bytes.h"

namespace lockstep::transport {

// Copies past the caches; the bytes are visible to whoever sees a later store. `into` holds bytes.size()
// bytes.
void copy_streaming(std::byte* into, ConstBytes bytes);

// Whether that is quicker than through the caches when a peer reads the bytes next, or nobody does soon.
// Measured on an EPYC, all_reduce of 4 KiB: between near cores 1.0 us cached and 1.2 us streamed, between far
// ones 3.0 us and 1.2 us. On an Intel Xeon it never is: 4 KiB 1.6 us and 1.9 us, 1 MiB that is not registered
// 124 us and 223 us, 64 MiB 17 ms and 22 ms.
bool streaming_pays();

// Copies into memory that a peer has read before and will read next. Through the caches each line must first
// be taken back from the peer's core, which is quick only between cores that share a cache; streaming stores
// go past that.
void copy_for_peer(std::byte* into, ConstBytes bytes);

}  // namespace lockstep::transport
