// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/large_memory.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace lockstep {
namespace {

// Of one call to the kernel, which cannot be stopped.
constexpr std::size_t kRoomAtOnce = std::size_t{16} << 20;

}  // namespace

LargeMemory::LargeMemory(std::size_t bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

void LargeMemory::take_room(const std::stop_token& stop) const {
#ifdef MADV_POPULATE_WRITE
  for (std::size_t at = 0; at < bytes_.size() && !stop.stop_requested(); at += kRoomAtOnce) {
    const std::size_t size = std::min(kRoomAtOnce, bytes_.size() - at);
    if (::madvise(bytes_.data() + at, size, MADV_POPULATE_WRITE) != 0) return;
  }
#endif
}

LargeMemory::~LargeMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

LargeMemory::LargeMemory(LargeMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace lockstep
