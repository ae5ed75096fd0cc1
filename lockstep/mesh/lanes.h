// SPDX-License-Identifier: Apache-2.0
//
// Lanes: the fixed pieces of data-parallel work (docs/architecture.md). The sum over L lanes (L a power of
// two) is one perfect binary tree; a *subtree* is an aligned power-of-two run of lanes, that is, one node of
// that tree.
#pragma once

#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep {

// The lanes [first, first + count): count is a power of two and first a multiple of it.
struct Subtree {
  int first = 0;
  int count = 1;

  constexpr int end() const { return first + count; }
  constexpr bool operator==(const Subtree&) const = default;
};

// Who owns which lanes: rank r owns the contiguous run [first_lane[r], first_lane[r + 1]); empty runs are
// allowed.
struct LaneOwnership {
  std::vector<int> first_lane;  // world + 1 entries, not decreasing, first 0, last L

  int world() const { return static_cast<int>(first_lane.size()) - 1; }
  int lanes() const { return first_lane.back(); }
  int count_of(Rank rank) const { return first_lane[rank + 1] - first_lane[rank]; }
  bool operator==(const LaneOwnership&) const = default;
};

// Cuts `lanes` (a power of two) evenly over `world` ranks, the first ones taking one more. UsageError
// otherwise.
LaneOwnership even_ownership(int lanes, int world);

// In proportion to `weights` (not negative, not all zero), by largest remainder, ties to the lower rank.
LaneOwnership weighted_ownership(int lanes, const std::vector<double>& weights);

// The fewest subtrees that cover [first, end), in order: what a rank that owns this run must at least send.
std::vector<Subtree> complete_subtrees(int first, int end);

// The smallest power of two that is not below `value` (value >= 1).
int round_up_to_power_of_two(int value);

}  // namespace lockstep
