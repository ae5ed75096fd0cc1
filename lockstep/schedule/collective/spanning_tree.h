// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: reductions up and broadcasts down trees whose edges are links between
// ranks.
#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// One rank's place in a tree. The children's sums come before or after the rank's own value in the order of
// addition. The root has no parent.
struct TreeNode {
  std::optional<Rank> parent;
  std::vector<Rank> before;
  std::vector<Rank> after;

  std::vector<Rank> children() const;
};

// A tree, seen from one rank, and the segments of the data buffer that it carries, in order. Segments are cut
// alike on all ranks.
struct CarryingTree {
  TreeNode node;
  std::vector<Range> segments;
};

// One round in which segments follow each other through all trees at once; a rank passes on a segment as soon
// as it has it. Trees must not carry the same elements.
Round reduce_up(const std::vector<CarryingTree>& trees, bool finish);
Round send_down(const std::vector<CarryingTree>& trees);

}  // namespace lockstep::schedule
