// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/schedule/part_formulas.h"
#include "tests/schedule/tree_by_text.h"

namespace lockstep::schedule::testing {
namespace {

bool is_rooted(Op op) {
  return op == Op::broadcast || op == Op::reduce;
}

// One of the trees and the half h of the elements that it carries.
class HalfOfTheTable {
 public:
  HalfOfTheTable(const Task& task, int tree)
      : task_(task),
        tree_(task.world(), tree == 1, is_rooted(task.op) ? std::optional(task.root) : std::nullopt),
        half_(chunk_range(task.count, 2, static_cast<std::size_t>(tree))),
        h_(task.op != Op::barrier ? half_.size()
           : tree == 0            ? 1
                                  : 0) {}

  int height() const { return tree_.height(); }
  bool is_empty() const { return half_.empty(); }
  Rank root() const { return tree_.rank_at(tree_.root()); }

  void add_sent(std::vector<std::size_t>& sent) const {
    if (task_.op == Op::broadcast) sent[static_cast<std::size_t>(task_.root)] += h_;
    for (int position = 1; position <= tree_.size(); ++position) {
      std::size_t& elements = sent[static_cast<std::size_t>(tree_.rank_at(position))];
      if (position != tree_.root() || task_.op == Op::reduce) elements += up(position);
      for (const int child : tree_.children(position)) elements += down(child);
    }
  }

  std::size_t part_of(Rank rank) const {
    return intersection(task_.chunks[static_cast<std::size_t>(rank)], half_).size();
  }

  // Steps from the root to the farthest rank with a part of its chunk in this half.
  int farthest_part() const {
    std::size_t steps = 0;
    for (int position = 1; position <= tree_.size(); ++position) {
      if (part_of(tree_.rank_at(position)) > 0) steps = std::max(steps, tree_.above(position).size());
    }
    return static_cast<int>(steps);
  }

 private:
  std::size_t up(int position) const {
    if (task_.op == Op::broadcast) return 0;
    return task_.op == Op::all_gather ? of_subtree(position) : h_;
  }
  std::size_t down(int child) const {
    if (task_.op == Op::reduce) return 0;
    return task_.op == Op::reduce_scatter ? of_subtree(child) : h_;
  }
  std::size_t of_subtree(int top) const {
    std::size_t elements = 0;
    for (int position = 1; position <= tree_.size(); ++position) {
      if (tree_.is_below(position, top)) elements += part_of(tree_.rank_at(position));
    }
    return elements;
  }

  const Task& task_;
  TreeByText tree_;
  Range half_;
  std::size_t h_;
};

// When the root of `half` has all of it, and can have sent its chunk up the other tree.
int gathered_after(const HalfOfTheTable& half, const HalfOfTheTable& other) {
  if (half.is_empty()) return 0;
  return std::max(half.farthest_part(), other.part_of(half.root()) > 0 ? 1 : 0);
}

int depth_of(Op op, const HalfOfTheTable& first, const HalfOfTheTable& second) {
  switch (op) {
    case Op::broadcast:
    case Op::reduce:
      return 1 + first.height();
    case Op::reduce_scatter:
      return first.height() + std::max(first.farthest_part(), second.farthest_part());
    case Op::all_gather:
      return first.height() + std::max(gathered_after(first, second), gathered_after(second, first));
    default:
      return 2 * first.height();
  }
}

}  // namespace

PredictedCost tree_by_table(const Task& task) {
  const HalfOfTheTable first(task, 0);
  const HalfOfTheTable second(task, 1);
  PredictedCost cost{.elements_sent = std::vector<std::size_t>(task.chunks.size(), 0)};
  first.add_sent(cost.elements_sent);
  second.add_sent(cost.elements_sent);
  cost.depth = depth_of(task.op, first, second);
  return cost;
}

}  // namespace lockstep::schedule::testing
