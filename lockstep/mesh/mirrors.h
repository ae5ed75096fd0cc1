// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep {

// By rank of a group, by the hosts of its ranks: who mirrors it. Another rank, and one on another host where
// there is one. Each mirrors one rank, unless a host has more ranks than all others together: then these
// share its ranks evenly, and each of its own mirrors one or none. Needs two ranks.
std::vector<Rank> mirrors_by_rank(std::span<const int> hosts);

}  // namespace lockstep
