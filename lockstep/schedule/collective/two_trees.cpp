// SPDX-License-Identifier: Apache-2.0
//
// A tree stands on positions 1..n: the root of an interval of positions is the one that most powers of two
// divide, its subtrees are the parts to its left and right. Odd positions are the leaves.
#include "lockstep/schedule/collective/two_trees.h"

#include <bit>

namespace lockstep::schedule {
namespace {

// A position in the tree over positions 1..size: its neighbours, 0 where there is none, its subtree's first
// and last position, and its steps from the root.
struct PositionNode {
  int parent = 0;
  int left = 0;
  int right = 0;
  int first = 0;
  int last = 0;
  int level = 0;
};

int middle_of(int first, int last) {
  // The only number of the interval that the largest possible power of two divides.
  for (int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(last)));; power /= 2) {
    const int multiple = last / power * power;
    if (multiple >= first) return multiple;
  }
}

PositionNode find_position(int position, int size) {
  PositionNode node{.first = 1, .last = size};
  for (;;) {
    const int root = middle_of(node.first, node.last);
    if (position == root) {
      if (node.first < root) node.left = middle_of(node.first, root - 1);
      if (root < node.last) node.right = middle_of(root + 1, node.last);
      return node;
    }
    node.parent = root;
    ++node.level;
    (position < root ? node.last : node.first) = position < root ? root - 1 : root + 1;
  }
}

}  // namespace

TwoTrees::TwoTrees(int world, std::optional<Rank> outside) : outside_(outside) {
  const Rank first = outside ? *outside + 1 : 0;
  for (int i = 0; i < world - (outside ? 1 : 0); ++i) members_.push_back((first + i) % world);
}

TreeNode TwoTrees::node_of(Rank rank, int tree) const {
  TreeNode node;
  if (rank == outside_) {
    node.after = {root_of(tree)};
    return node;
  }
  const PositionNode found = find_position(position_of(rank, tree), size());
  node.parent = found.parent != 0 ? std::optional(rank_at(found.parent, tree)) : outside_;
  if (found.left != 0) node.before = {rank_at(found.left, tree)};
  if (found.right != 0) node.after = {rank_at(found.right, tree)};
  return node;
}

Rank TwoTrees::root_of(int tree) const {
  return rank_at(middle_of(1, size()), tree);
}

int TwoTrees::tree_of_children(Rank rank) const {
  return node_of(rank, 0).children().empty() ? 1 : 0;
}

std::vector<Rank> TwoTrees::subtree_of(Rank rank, int tree) const {
  const PositionNode found = find_position(position_of(rank, tree), size());
  std::vector<Rank> ranks;
  for (int position = found.first; position <= found.last; ++position) {
    ranks.push_back(rank_at(position, tree));
  }
  return ranks;
}

int TwoTrees::level_of(Rank rank, int tree) const {
  return find_position(position_of(rank, tree), size()).level;
}

int TwoTrees::height() const {
  return std::bit_width(static_cast<unsigned>(size())) - 1;
}

// The second tree mirrors the first when that swaps odd and even positions, and else is shifted by one.
Rank TwoTrees::rank_at(int position, int tree) const {
  if (tree == 0) return members_[position - 1];
  return size() % 2 == 0 ? members_[size() - position] : members_[position % size()];
}

int TwoTrees::position_of(Rank rank, int tree) const {
  const int world = size() + (outside_ ? 1 : 0);
  const int index = (rank - members_.front() + world) % world;
  if (tree == 0) return index + 1;
  if (size() % 2 == 0) return size() - index;
  return index == 0 ? size() : index;
}

}  // namespace lockstep::schedule
