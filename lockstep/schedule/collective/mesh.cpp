// SPDX-License-Identifier: Apache-2.0
//
// mesh: ranks stand in a grid and talk only to their neighbours in it. What everyone must have a share in is
// done along rows and along columns, by rings where the grid is a torus and by lines where it is not; what
// has one root runs over a tree that follows the root's row and from there every column.
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/compose.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/spanning_tree.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {
namespace {

// The neighbours of `position` on the way to (toward) and away from (away) `root`, on a line or ring of n.
struct AxisNode {
  std::optional<int> toward;
  std::vector<int> away;
};

AxisNode axis_node(int position, int root, int n, bool ring) {
  // Offsets from the root reach from -left to right, on a ring halfway round each way.
  const int right = ring ? n / 2 : n - 1 - root;
  const int left = n - 1 - right;
  const auto at = [&](int offset) { return ((root + offset) % n + n) % n; };
  int offset = ((position - root) % n + n) % n;
  if (offset > right) offset -= n;
  AxisNode node;
  if (offset != 0) node.toward = at(offset > 0 ? offset - 1 : offset + 1);
  if (offset <= 0 && offset > -left) node.away.push_back(at(offset - 1));
  if (offset >= 0 && offset < right) node.away.push_back(at(offset + 1));
  return node;
}

class Grid {
 public:
  explicit Grid(const Task& task)
      : task_(task),
        rows_(task.grid.rows),
        columns_(task.grid.columns),
        row_(task.rank / columns_),
        column_(task.rank % columns_) {}

  // Scatter along the row, reduce fully along the column, gather along the row.
  void add_all_reduce(Program& program) const {
    const std::vector<Range> by_column = even_chunks(task_.count, columns_);
    add_row(program, Op::reduce_scatter, by_column, task_.finish && rows_ == 1);
    add_column(program, Op::all_reduce, cut(by_column[column_], rows_), task_.finish);
    add_row(program, Op::all_gather, by_column, false);
  }

  // A row's chunks are adjacent, so columns scatter first and gather last.
  void add_reduce_scatter(Program& program) const {
    add_column(program, Op::reduce_scatter, chunks_by_row(), task_.finish && columns_ == 1);
    add_row(program, Op::reduce_scatter, chunks_of_row(), task_.finish);
  }
  void add_all_gather(Program& program) const {
    add_row(program, Op::all_gather, chunks_of_row(), false);
    add_column(program, Op::all_gather, chunks_by_row(), false);
  }

  TreeNode node_from(Rank root) const {
    const AxisNode in_row = axis_node(column_, root % columns_, columns_, is_ring(columns_));
    const AxisNode in_column = axis_node(row_, root / columns_, rows_, is_ring(rows_));
    TreeNode node;
    if (in_column.toward) {
      node.parent = *in_column.toward * columns_ + column_;
    } else {
      if (in_row.toward) node.parent = row_ * columns_ + *in_row.toward;
      for (int column : in_row.away) node.after.push_back(row_ * columns_ + column);
    }
    for (int row : in_column.away) node.after.push_back(row * columns_ + column_);
    return node;
  }

 private:
  bool is_ring(int length) const { return task_.grid.torus && length > 2; }

  static std::vector<Range> cut(Range range, int parts) {
    std::vector<Range> chunks = even_chunks(range.size(), parts);
    for (Range& chunk : chunks) chunk = {chunk.begin + range.begin, chunk.end + range.begin};
    return chunks;
  }
  std::vector<Range> chunks_of_row() const {
    const auto first = task_.chunks.begin() + row_ * columns_;
    return {first, first + columns_};
  }
  std::vector<Range> chunks_by_row() const {
    std::vector<Range> chunks;
    for (int row = 0; row < rows_; ++row) {
      chunks.push_back({task_.chunks[row * columns_].begin, task_.chunks[row * columns_ + columns_ - 1].end});
    }
    return chunks;
  }

  void add_row(Program& program, Op op, const std::vector<Range>& chunks, bool finish) const {
    std::vector<Rank> members;
    for (int column = 0; column < columns_; ++column) members.push_back(row_ * columns_ + column);
    add_axis(program, {.op = op, .rank = column_, .chunks = chunks, .finish = finish}, members);
  }
  void add_column(Program& program, Op op, const std::vector<Range>& chunks, bool finish) const {
    std::vector<Rank> members;
    for (int row = 0; row < rows_; ++row) members.push_back(row * columns_ + column_);
    add_axis(program, {.op = op, .rank = row_, .chunks = chunks, .finish = finish}, members);
  }
  void add_axis(Program& program, Task axis, const std::vector<Rank>& members) const {
    const Range covered{axis.chunks.front().begin, axis.chunks.back().end};
    for (Range& chunk : axis.chunks) chunk = {chunk.begin - covered.begin, chunk.end - covered.begin};
    axis.count = covered.size();
    const bool ring = is_ring(static_cast<int>(members.size()));
    append(program, ring ? generate_ring(axis) : generate_line(axis), {members, {covered}});
  }

  const Task& task_;
  int rows_;
  int columns_;
  int row_;
  int column_;
};

}  // namespace

Program generate_mesh(const Task& task) {
  const Grid grid(task);
  const TreeNode node = grid.node_from(task.root);
  const std::vector<Range> segments = segments_of({0, task.count}, task.segment_elements);
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  switch (task.op) {
    case Op::all_reduce:
      grid.add_all_reduce(program);
      break;
    case Op::reduce_scatter:
      grid.add_reduce_scatter(program);
      break;
    case Op::all_gather:
      grid.add_all_gather(program);
      break;
    case Op::broadcast:
      add(program, send_down({{node, segments}}));
      break;
    case Op::reduce:
      add(program, reduce_up({{node, segments}}, task.finish));
      break;
    default:
      return barrier_over(node, node, task);
  }
  return program;
}

}  // namespace lockstep::schedule
