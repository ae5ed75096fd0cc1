// SPDX-License-Identifier: Apache-2.0
//
// all_to_all by the text of docs/algorithms.md: the way of every single block.
#pragma once

#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule::testing {

// The ranks that send a block on from `origin` to `destination`, in order; by any algorithm but hierarchical,
// a mesh of `grid`. Empty if the two are one.
std::vector<Rank> way_of(Algorithm algorithm, Rank origin, Rank destination, const GridShape& grid);

// Messages that must follow one another to bring all blocks home.
int depth_of_ways(Algorithm algorithm, const GridShape& grid);

}  // namespace lockstep::schedule::testing
