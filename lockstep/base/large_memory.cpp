// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/large_memory.h"

#include <new>
#include <utility>

#include <sys/mman.h>

namespace lockstep {

LargeMemory::LargeMemory(std::size_t bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // a wish
  bytes_ = {static_cast<std::byte*>(memory), bytes};
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
