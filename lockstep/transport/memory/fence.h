// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace lockstep::transport {

// Orders all that came before against all that comes after, loads after stores included. ThreadSanitizer does
// not model fences; it does not need these: the words on both sides are atomic, and what they guard is
// ordered by acquire and release.
#pragma GCC diagnostic push
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
inline void full_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
#pragma GCC diagnostic pop

}  // namespace lockstep::transport
