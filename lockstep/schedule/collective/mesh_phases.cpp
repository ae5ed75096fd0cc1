// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include "lockstep/schedule/collective/mesh.h"

namespace lockstep::schedule {
namespace {

class Grid {
 public:
  explicit Grid(const Task& task) : task_(task), rows_(task.grid.rows), columns_(task.grid.columns) {}

  // Scatter along the rows, reduce fully along the columns, gather along the rows.
  std::vector<Phase> all_reduce() const {
    const std::vector<Range> by_column = even_chunks(task_.count, columns_);
    Phase reduce_columns;
    for (int column = 0; column < columns_; ++column) {
      reduce_columns.push_back(along_column(column,
                                            {.op = Op::all_reduce,
                                             .chunks = even_chunks(by_column[column].size(), rows_),
                                             .finish = task_.finish},
                                            by_column[column].begin));
    }
    return {rows(Op::reduce_scatter, by_column, task_.finish && rows_ == 1), std::move(reduce_columns),
            rows(Op::all_gather, by_column, false)};
  }

  // A row's chunks are adjacent, so columns scatter first and gather last.
  std::vector<Phase> reduce_scatter() const {
    return {columns_by_row(task_.finish && columns_ == 1), rows_by_chunk(task_.finish)};
  }
  std::vector<Phase> all_gather() const { return {rows_by_chunk(false), columns_by_row(false)}; }

 private:
  Phase rows(Op op, const std::vector<Range>& chunks, bool finish) const {
    Phase phase;
    for (int row = 0; row < rows_; ++row) {
      phase.push_back(along_row(row, {.op = op, .chunks = chunks, .finish = finish}, 0));
    }
    return phase;
  }

  Phase rows_by_chunk(bool finish) const {
    Phase phase;
    for (int row = 0; row < rows_; ++row) {
      const Rank first = row * columns_;
      const std::size_t begin = task_.chunks[first].begin;
      std::vector<Range> chunks;
      for (int column = 0; column < columns_; ++column) {
        const Range chunk = task_.chunks[first + column];
        chunks.push_back({chunk.begin - begin, chunk.end - begin});
      }
      phase.push_back(along_row(row, {.op = task_.op, .chunks = chunks, .finish = finish}, begin));
    }
    return phase;
  }

  Phase columns_by_row(bool finish) const {
    std::vector<Range> chunks;
    for (int row = 0; row < rows_; ++row) {
      const Rank first = row * columns_;
      chunks.push_back({task_.chunks[first].begin, task_.chunks[first + columns_ - 1].end});
    }
    Phase phase;
    for (int column = 0; column < columns_; ++column) {
      phase.push_back(along_column(column, {.op = task_.op, .chunks = chunks, .finish = finish}, 0));
    }
    return phase;
  }

  Part along_row(int row, Task task, std::size_t begin) const {
    std::vector<Rank> members(columns_);
    std::iota(members.begin(), members.end(), row * columns_);
    return part(std::move(members), std::move(task), begin);
  }
  Part along_column(int column, Task task, std::size_t begin) const {
    std::vector<Rank> members(rows_);
    for (int row = 0; row < rows_; ++row) members[row] = row * columns_ + column;
    return part(std::move(members), std::move(task), begin);
  }
  Part part(std::vector<Rank> members, Task task, std::size_t begin) const {
    const bool ring = is_ring(static_cast<int>(members.size()), task_.grid.torus);
    task.count = task.chunks.back().end;
    const Range view{begin, begin + task.count};
    return {ring ? FlatAlgorithm{generate_ring, ring_cost} : FlatAlgorithm{generate_line, line_cost},
            std::move(task),
            {std::move(members), {view}}};
  }

  const Task& task_;
  int rows_;
  int columns_;
};

}  // namespace

std::vector<Phase> mesh_phases(const Task& task) {
  const Grid grid(task);
  if (task.op == Op::reduce_scatter) return grid.reduce_scatter();
  return task.op == Op::all_gather ? grid.all_gather() : grid.all_reduce();
}

}  // namespace lockstep::schedule
