// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "lockstep/base/deadline.h"

namespace lockstep {

inline double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace lockstep
