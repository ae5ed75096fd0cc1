// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/spanning_tree.h"

#include <algorithm>
#include <utility>

#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

Move reduce_segment(const TreeNode& node, Slice segment, bool finish) {
  const std::vector<Rank> to_parent = node.parent ? std::vector{*node.parent} : std::vector<Rank>{};
  if (node.before.empty() && node.after.empty()) return send(segment, to_parent);
  std::vector<Source> sources;
  for (Rank child : node.before) sources.push_back(message(child));
  sources.push_back(local(segment));
  for (Rank child : node.after) sources.push_back(message(child));
  Move move = combine_in_order(std::move(sources), segment);
  move.send_to = to_parent;
  move.finish = finish && !node.parent;
  return move;
}

Move pass_segment(const TreeNode& node, Slice segment) {
  return node.parent ? receive(*node.parent, segment, node.children()) : send(segment, node.children());
}

// Segment by segment, and for each the trees in turn. All ranks use this order, so that trees which share a
// link agree on the order of its messages and no message waits for a later one.
template <typename MakeMove>
Round interleave(const std::vector<CarryingTree>& trees, MakeMove make_move) {
  std::size_t longest = 0;
  for (const CarryingTree& tree : trees) longest = std::max(longest, tree.segments.size());
  Round round;
  for (std::size_t index = 0; index < longest; ++index) {
    for (const CarryingTree& tree : trees) {
      if (index < tree.segments.size()) add(round, make_move(tree.node, data(tree.segments[index])));
    }
  }
  return round;
}

}  // namespace

std::vector<Rank> TreeNode::children() const {
  std::vector<Rank> all = before;
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

Round reduce_up(const std::vector<CarryingTree>& trees, bool finish) {
  return interleave(
      trees, [&](const TreeNode& node, Slice segment) { return reduce_segment(node, segment, finish); });
}

Round send_down(const std::vector<CarryingTree>& trees) {
  return interleave(trees, pass_segment);
}

}  // namespace lockstep::schedule
