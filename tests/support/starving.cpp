// SPDX-License-Identifier: Apache-2.0
#include "tests/support/starving.h"

#include <cstdlib>
#include <exception>
#include <limits>
#include <new>

namespace {

constexpr std::size_t kPlenty = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allocations_left = kPlenty;

}  // namespace

// These take the place of the library's in the whole program, also of those that do not throw: sanitizers
// want memory to come and go by the same hands. Not inlined, or GCC sees a free() of what new has given and
// warns.
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  if (allocations_left == 0) return nullptr;
  if (allocations_left != kPlenty) --allocations_left;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace lockstep::test {

Starved with_memory_for(std::size_t allocations, const std::function<void()>& call) {
  Starved result;
  allocations_left = allocations;
  try {
    call();
  } catch (const std::exception&) {
    result.threw = true;
  }
  result.ran_out = allocations_left == 0;
  allocations_left = kPlenty;
  return result;
}

}  // namespace lockstep::test
