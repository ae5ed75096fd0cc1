// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/cpu.h"

#include <thread>

#include <sched.h>

namespace lockstep {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace lockstep
