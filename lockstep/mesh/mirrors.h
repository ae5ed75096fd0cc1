// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep {

// By rank of a group, by the hosts of its ranks: who mirrors it. Another rank, and one on another host where
// there is one, however unevenly the ranks lie on them; those that can take turns. Needs two ranks.
std::vector<Rank> mirrors_by_rank(std::span<const int> hosts);

}  // namespace lockstep
