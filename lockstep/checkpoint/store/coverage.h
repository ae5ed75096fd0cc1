// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/mesh/runs.h"

namespace lockstep::checkpoint {

// What is wrong with pieces that are to make up a tensor, as in "has no piece with element 12"; none when
// each of its elements is in exactly one of them. The runs have elements, and none beyond `elements`. Takes
// time by the number of pieces, not of runs, when those that alternate have one distance, as those of a
// matrix do. `patience` is how many comparisons may be made, and becomes as many less: a manifest from
// outside must not keep its reader busy for ever.
std::optional<std::string> find_gap(std::vector<Runs> pieces, std::size_t elements, std::uint64_t& patience);

inline constexpr std::uint64_t kMostPatience = std::uint64_t{1} << 27;  // less than a second

}  // namespace lockstep::checkpoint
