// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/lanes.h"

#include <bit>

namespace lockstep {

int round_up_to_power_of_two(int value) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value)));
}

}  // namespace lockstep
