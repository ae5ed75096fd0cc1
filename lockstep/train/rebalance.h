// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/mesh/lanes.h"

namespace lockstep::train {

// Lanes dealt out by how fast each rank is: `seconds[r]` is what rank r has taken to compute the lanes that
// it owns. Ranks without lanes count as of average speed. The same ownership as before unless the slowest
// rank would be done at least 5 % sooner. A pure function: all ranks come to the same result.
LaneOwnership rebalanced(const LaneOwnership& lanes, std::span<const double> seconds);

}  // namespace lockstep::train
