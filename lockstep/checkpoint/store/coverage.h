// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/mesh/runs.h"

namespace lockstep::checkpoint {

// What is wrong with pieces that are to make up a tensor, as in "has no piece with element 12"; none when
// each of its elements is in exactly one of them. The runs have elements, and none beyond `elements`. Takes
// time by the number of pieces, not of runs, when those that alternate have one distance, as those of a
// matrix do; gives up on others after some 10^8 runs.
std::optional<std::string> find_gap(std::vector<Runs> pieces, std::size_t elements);

}  // namespace lockstep::checkpoint
