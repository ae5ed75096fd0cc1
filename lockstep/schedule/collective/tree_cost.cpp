// SPDX-License-Identifier: Apache-2.0
//
// Formulas of tree.
#include <algorithm>

#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/tree_chunks.h"
#include "lockstep/schedule/collective/two_trees.h"

namespace lockstep::schedule {
namespace {

class TreeFormula {
 public:
  explicit TreeFormula(const Task& task)
      : task_(task),
        rooted_(task.op == Op::broadcast || task.op == Op::reduce),
        trees_(task.world(), rooted_ ? std::optional(task.root) : std::nullopt) {}

  std::size_t sent(Rank rank) const {
    std::size_t elements = 0;
    for (int tree : {0, 1}) {
      const TreeNode node = trees_.node_of(rank, tree);
      if (node.parent) elements += up(rank, tree);
      for (Rank child : node.children()) elements += down(child, tree);
    }
    return elements;
  }

  int depth() const {
    if (rooted_) return 1 + trees_.height();
    if (task_.op == Op::reduce_scatter)
      return trees_.height() + std::max(farthest_chunk(0), farthest_chunk(1));
    if (task_.op == Op::all_gather) return trees_.height() + std::max(gathered_after(0), gathered_after(1));
    return 2 * trees_.height();
  }

 private:
  // What the tree carries, if all of it passes an edge.
  std::size_t carried(int tree) const { return task_.op == Op::barrier ? 1 - tree : half(tree).size(); }
  Range half(int tree) const { return chunk_range(task_.count, 2, tree); }

  // Over the edge above `rank`, from it and to it.
  std::size_t up(Rank rank, int tree) const {
    if (task_.op == Op::broadcast) return 0;
    return task_.op == Op::all_gather ? below(rank, tree) : carried(tree);
  }
  std::size_t down(Rank rank, int tree) const {
    if (task_.op == Op::reduce) return 0;
    return task_.op == Op::reduce_scatter ? below(rank, tree) : carried(tree);
  }
  std::size_t below(Rank top, int tree) const {
    std::size_t elements = 0;
    for (const Range& range : chunks_below(trees_, task_, top, tree)) elements += range.size();
    return elements;
  }

  bool has_part(Rank rank, int tree) const { return overlap(task_.chunks[rank], half(tree)); }

  // Steps between the root and the farthest rank whose chunk is in the tree's half.
  int farthest_chunk(int tree) const {
    int steps = 0;
    for (Rank rank = 0; rank < task_.world(); ++rank) {
      if (has_part(rank, tree)) steps = std::max(steps, trees_.level_of(rank, tree));
    }
    return steps;
  }

  // When the root has the tree's half; it may have sent a chunk in the other tree meanwhile.
  int gathered_after(int tree) const {
    if (half(tree).empty()) return 0;
    const Rank root = trees_.root_of(tree);
    return std::max(farthest_chunk(tree), has_part(root, 1 - tree) ? 1 : 0);
  }

  const Task& task_;
  bool rooted_;
  TwoTrees trees_;
};

}  // namespace

PredictedCost tree_cost(const Task& task) {
  const TreeFormula formula(task);
  PredictedCost cost{
      .elements_sent = {}, .elements_combined = least_combined(task), .depth = formula.depth()};
  for (Rank rank = 0; rank < task.world(); ++rank) cost.elements_sent.push_back(formula.sent(rank));
  return cost;
}

}  // namespace lockstep::schedule
