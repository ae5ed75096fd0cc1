// SPDX-License-Identifier: Apache-2.0
//
// The one order in which exact collectives add: the canonical tree over n leaves splits at the largest power
// of two below n. For n a power of two it is the perfect binary tree, so it is the lane tree when leaves are
// lanes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {

// The number of leaves in the left half of the canonical tree over `leaves` (>= 2).
int canonical_split(int leaves);

// Merge counts (see Source::merges) that combine `leaves` operands, pushed in order, as the canonical tree.
std::vector<std::uint8_t> canonical_merges(int leaves);

// The same when the operands are subtrees that cover all lanes once and in order.
std::vector<std::uint8_t> canonical_merges(std::span<const Subtree> operands);

}  // namespace lockstep::schedule
