// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/tree_chunks.h"

#include <algorithm>
#include <utility>

#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

void add_sends(Round& round, const std::vector<Range>& ranges, Rank to) {
  for (const Range& range : ranges) add(round, send(data(range), {to}));
}

void add_receives(Round& round, const std::vector<Range>& ranges, Rank from) {
  for (const Range& range : ranges) add(round, receive(from, data(range)));
}

}  // namespace

std::vector<Range> chunks_below(const TwoTrees& trees, const Task& task, Rank top, int tree) {
  std::vector<Rank> ranks = trees.subtree_of(top, tree);
  std::ranges::sort(ranks);
  std::vector<Range> ranges;
  for (Rank rank : ranks) {
    const Range part = intersection(task.chunks[rank], chunk_range(task.count, 2, tree));
    if (part.empty()) continue;
    if (!ranges.empty() && ranges.back().end == part.begin) {
      ranges.back().end = part.end;
    } else {
      ranges.push_back(part);
    }
  }
  return ranges;
}

// A rank takes what its parent has for it where it has children, before it gives them theirs. What it gets as
// a leaf of the other tree must not hold that up: the roots may be each other's leaves.
void add_scatter_down(Program& program, const TwoTrees& trees, const Task& task) {
  Round take;
  Round give;
  for (int tree : {0, 1}) {
    const TreeNode node = trees.node_of(task.rank, tree);
    const std::vector<Rank> children = node.children();
    if (node.parent) {
      add_receives(children.empty() ? give : take, chunks_below(trees, task, task.rank, tree), *node.parent);
    }
    for (Rank child : children) add_sends(give, chunks_below(trees, task, child, tree), child);
  }
  add(program, std::move(take));
  add(program, std::move(give));
}

// A rank with nothing to wait for sends at once.
void add_gather_up(Program& program, const TwoTrees& trees, const Task& task) {
  Round take;
  Round give;
  for (int tree : {0, 1}) {
    const TreeNode node = trees.node_of(task.rank, tree);
    bool waits = false;
    for (Rank child : node.children()) {
      const std::vector<Range> ranges = chunks_below(trees, task, child, tree);
      waits |= !ranges.empty();
      add_receives(take, ranges, child);
    }
    if (!node.parent) continue;
    add_sends(waits ? give : take, chunks_below(trees, task, task.rank, tree), *node.parent);
  }
  add(program, std::move(take));
  add(program, std::move(give));
}

}  // namespace lockstep::schedule
