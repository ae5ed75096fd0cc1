// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace lockstep {

// Seconds since 1970 by the wall clock, which may jump: for whoever reads a record, never for a decision. The
// one place that asks that clock (tools/check_layers.py).
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace lockstep
