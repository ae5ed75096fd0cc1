// SPDX-License-Identifier: Apache-2.0
//
// tree: two binary trees over the same ranks (two_trees.h), each carrying half of the elements in segments.
// Reductions go up and what all need comes down. In reduce_scatter a parent gives a child only the chunks of
// its subtree, and in all_gather a child gives its parent those.
#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/spanning_tree.h"
#include "lockstep/schedule/collective/tree_chunks.h"
#include "lockstep/schedule/collective/two_trees.h"

namespace lockstep::schedule {

Program generate_tree(const Task& task) {
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  const bool rooted = task.op == Op::broadcast || task.op == Op::reduce;
  const TwoTrees trees(task.world(), rooted ? std::optional(task.root) : std::nullopt);
  if (task.op == Op::barrier) {
    const TreeNode node = trees.node_of(task.rank, 0);
    return barrier_over(node, node, task);
  }
  std::vector<CarryingTree> halves;
  for (int tree : {0, 1}) {
    halves.push_back({trees.node_of(task.rank, tree),
                      segments_of(chunk_range(task.count, 2, tree), task.segment_elements)});
  }
  const bool reduces = task.op != Op::broadcast && task.op != Op::all_gather;
  const bool spreads = task.op != Op::reduce && task.op != Op::reduce_scatter;
  if (task.op == Op::all_gather) add_gather_up(program, trees, task);
  if (reduces) add(program, reduce_up(halves, task.finish));
  if (spreads) add(program, send_down(halves));
  if (task.op == Op::reduce_scatter) add_scatter_down(program, trees, task);
  return program;
}

}  // namespace lockstep::schedule
