// SPDX-License-Identifier: Apache-2.0
//
// Shared memory without a name (docs/decisions/0002-shared-memory-without-names.md): anonymous files of the
// kernel, reachable only through descriptors, gone with the last process that has one. They are sealed, so
// that nobody can shrink one under a reader.
#pragma once

#include <cstddef>

#include "lockstep/base/host_memory.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport {

enum class Reserve {
  when_touched,  // costs nothing until used
  now,           // later use cannot fail for want of memory
};

// A zero-filled segment; `bytes` is rounded up to whole pages. UsageError with the amounts when a limit is in
// the way.
Descriptor make_segment(std::size_t bytes, Reserve reserve);

// UsageError with the amounts when the memory has no room for so many bytes. What control groups hold of
// files that nobody has read lately is room: the kernel gives it up.
void require_room(std::size_t bytes, const HostMemory& memory);

// The size of a segment that a peer made. DataError when it is no sealed memory file or its size is not
// `expected`.
void check_segment(int fd, std::size_t expected);

std::size_t whole_pages(std::size_t bytes);

}  // namespace lockstep::transport
