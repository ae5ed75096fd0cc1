// SPDX-License-Identifier: Apache-2.0
//
// mesh: ranks stand in a grid and talk only to their neighbours in it. What everyone has a share in is done
// along rows and along columns, by rings where the grid is a torus and by lines where it is not; what has one
// root runs over a tree that follows the root's row and from there every column.
#include "lockstep/schedule/collective/mesh.h"

#include <algorithm>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/spanning_tree.h"

namespace lockstep::schedule {
namespace {

bool is_rooted(Op op) {
  return op == Op::broadcast || op == Op::reduce || op == Op::barrier;
}

// The tree from the root of a task, seen from any rank.
class GridTree {
 public:
  explicit GridTree(const Task& task)
      : columns_(task.grid.columns),
        root_row_(task.root / columns_),
        row_(columns_, task.root % columns_, task.grid.torus),
        column_(task.grid.rows, root_row_, task.grid.torus) {}

  TreeNode node_of(Rank rank) const {
    const int row = rank / columns_;
    const int column = rank % columns_;
    TreeNode node;
    if (const std::optional<int> nearer = column_.toward_root(row)) node.parent = *nearer * columns_ + column;
    if (row == root_row_) {
      if (const std::optional<int> nearer = row_.toward_root(column)) node.parent = row * columns_ + *nearer;
      for (int further : row_.away_from_root(column)) node.after.push_back(row * columns_ + further);
    }
    for (int further : column_.away_from_root(row)) node.after.push_back(further * columns_ + column);
    return node;
  }

  int farthest() const { return row_.farthest() + column_.farthest(); }

 private:
  int columns_;
  int root_row_;
  Axis row_;
  Axis column_;
};

}  // namespace

Axis::Axis(int length, int root, bool torus)
    : length_(length),
      root_(root),
      right_(is_ring(length, torus) ? length / 2 : length - 1 - root),
      left_(length - 1 - right_) {}

int Axis::at(int offset) const {
  return (root_ + offset + length_) % length_;
}

int Axis::offset_of(int position) const {
  const int offset = (position - root_ + length_) % length_;
  return offset > right_ ? offset - length_ : offset;
}

std::optional<int> Axis::toward_root(int position) const {
  const int offset = offset_of(position);
  if (offset == 0) return std::nullopt;
  return at(offset > 0 ? offset - 1 : offset + 1);
}

std::vector<int> Axis::away_from_root(int position) const {
  const int offset = offset_of(position);
  std::vector<int> positions;
  if (offset <= 0 && offset > -left_) positions.push_back(at(offset - 1));
  if (offset >= 0 && offset < right_) positions.push_back(at(offset + 1));
  return positions;
}

int Axis::farthest() const {
  return std::max(left_, right_);
}

Program generate_mesh(const Task& task) {
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  if (!is_rooted(task.op)) {
    append(program, mesh_phases(task));
    return program;
  }
  const TreeNode node = GridTree(task).node_of(task.rank);
  if (task.op == Op::barrier) return barrier_over(node, node, task);
  const std::vector<CarryingTree> tree = {{node, segments_of({0, task.count}, task.segment_elements)}};
  if (task.op == Op::broadcast) add(program, send_down(tree));
  if (task.op == Op::reduce) add(program, reduce_up(tree, task.finish));
  return program;
}

PredictedCost mesh_cost(const Task& task) {
  if (!is_rooted(task.op)) return cost_of(mesh_phases(task), task.world());
  const GridTree tree(task);
  const std::size_t elements = task.op == Op::barrier ? 1 : task.count;
  PredictedCost cost;
  for (Rank rank = 0; rank < task.world(); ++rank) {
    const bool up = task.op != Op::broadcast && rank != task.root;
    const std::size_t down = task.op != Op::reduce ? tree.node_of(rank).children().size() : 0;
    cost.elements_sent.push_back(elements * ((up ? 1 : 0) + down));
  }
  cost.elements_combined = least_combined(task);
  cost.depth = tree.farthest() * (task.op == Op::barrier ? 2 : 1);
  return cost;
}

}  // namespace lockstep::schedule
