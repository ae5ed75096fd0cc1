// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: two binary trees over the same ranks. A rank that has children in one tree
// is a leaf of the other, so that all ranks send and receive about the same when each tree carries half of
// the work. After P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan" (2009).
#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/spanning_tree.h"

namespace lockstep::schedule {

// The ranks that stand in the two trees (0 and 1) and, for rooted operations, the rank outside that both
// roots talk to.
class TwoTrees {
 public:
  explicit TwoTrees(int world, std::optional<Rank> outside = std::nullopt);

  TreeNode node_of(Rank rank, int tree) const;
  Rank root_of(int tree) const;

  // The tree in which the rank has children; 1 if it has none.
  int tree_of_children(Rank rank) const;
  // For ranks inside: the rank itself and all below it, in order of position; and its steps from the top.
  std::vector<Rank> subtree_of(Rank rank, int tree) const;
  int level_of(Rank rank, int tree) const;
  // The most steps that any rank is away from the top, in either tree.
  int height() const;

 private:
  int size() const { return static_cast<int>(members_.size()); }
  Rank rank_at(int position, int tree) const;
  int position_of(Rank rank, int tree) const;

  std::vector<Rank> members_;
  std::optional<Rank> outside_;
};

}  // namespace lockstep::schedule
