// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/memory.h"

#include <limits>

#include <malloc.h>

namespace lockstep::train {

void keep_freed_memory() {
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace lockstep::train
