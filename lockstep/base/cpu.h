// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

// Tells the core that this thread is spinning.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Cores that this process may run on (its affinity mask, not the machine's count).
int usable_cores();

}  // namespace lockstep
