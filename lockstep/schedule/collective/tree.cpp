// SPDX-License-Identifier: Apache-2.0
//
// tree: two binary trees over the same ranks, each carrying half of the elements in segments. A rank that has
// children in one tree is a leaf of the other (as far as the world allows), so that all ranks send and
// receive about the same. After P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan" (2009).
//
// A tree stands on positions 1..n: the root of an interval of positions is the one that most powers of two
// divide, its subtrees are the parts to its left and right. Odd positions are the leaves.
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/spanning_tree.h"

namespace lockstep::schedule {
namespace {

// Neighbours of a position in the tree over positions 1..size; 0 where there is none.
struct PositionNode {
  int parent = 0;
  int left = 0;
  int right = 0;
};

int root_of(int first, int last) {
  // The only number of the interval that the largest possible power of two divides.
  for (int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(last)));; power /= 2) {
    const int multiple = last / power * power;
    if (multiple >= first) return multiple;
  }
}

PositionNode find_position(int position, int size) {
  int first = 1;
  int last = size;
  int parent = 0;
  for (;;) {
    const int root = root_of(first, last);
    if (position == root) {
      return {.parent = parent,
              .left = first < root ? root_of(first, root - 1) : 0,
              .right = root < last ? root_of(root + 1, last) : 0};
    }
    parent = root;
    (position < root ? last : first) = position < root ? root - 1 : root + 1;
  }
}

// The ranks that stand in the two trees and, for rooted operations, the rank outside that both roots talk to.
class TwoTrees {
 public:
  TwoTrees(int world, std::optional<Rank> outside) : outside_(outside) {
    const Rank first = outside ? *outside + 1 : 0;
    for (int i = 0; i < world - (outside ? 1 : 0); ++i) members_.push_back((first + i) % world);
  }

  TreeNode node_of(Rank rank, int tree) const {
    const int size = static_cast<int>(members_.size());
    TreeNode node;
    if (rank == outside_) {
      node.after = {rank_at(root_of(1, size), tree)};
      return node;
    }
    int position = 1;
    while (rank_at(position, tree) != rank) ++position;
    const PositionNode found = find_position(position, size);
    node.parent = found.parent != 0 ? std::optional(rank_at(found.parent, tree)) : outside_;
    if (found.left != 0) node.before = {rank_at(found.left, tree)};
    if (found.right != 0) node.after = {rank_at(found.right, tree)};
    return node;
  }

 private:
  // The second tree mirrors the first when that swaps odd and even positions, and else is shifted by one.
  Rank rank_at(int position, int tree) const {
    const int size = static_cast<int>(members_.size());
    if (tree == 0) return members_[position - 1];
    return size % 2 == 0 ? members_[size - position] : members_[position % size];
  }

  std::vector<Rank> members_;
  std::optional<Rank> outside_;
};

}  // namespace

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
  if (task.op != Op::broadcast) add(program, reduce_up(halves, task.finish));
  if (task.op != Op::reduce) add(program, send_down(halves));
  return program;
}

}  // namespace lockstep::schedule
