// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tests/schedule/part_formulas.h"

namespace lockstep::schedule::testing {
namespace {

using Sizes = std::vector<std::size_t>;

std::size_t sum(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

Sizes even(std::size_t count, int parts) {
  Sizes sizes;
  for (const Range& chunk : even_chunks(count, parts)) sizes.push_back(chunk.size());
  return sizes;
}

// The table of a line, and that of a ring where the grid is a torus.
std::size_t scatter(const Sizes& chunks, int place) {
  return sum(chunks) - chunks[static_cast<std::size_t>(place)];
}
std::size_t gather(const Sizes& chunks, int place, bool torus) {
  const auto at = static_cast<std::size_t>(place);
  if (torus && chunks.size() > 2) return sum(chunks) - chunks[(at + 1) % chunks.size()];
  std::size_t elements = 0;
  for (std::size_t other = 0; other < chunks.size(); ++other) {
    if (other <= at && at + 1 < chunks.size()) elements += chunks[other];  // to the right
    if (other >= at && at > 0) elements += chunks[other];                  // to the left
  }
  return elements;
}

// How far a tree reaches from the root of a row or column, to its right and left.
struct Reach {
  Reach(int length, int root, bool torus)
      : right(torus && length > 2 ? length / 2 : length - 1 - root), left(length - 1 - right) {}

  int farthest() const { return std::max(right, left); }
  // Of the place `steps` to the right of the root, counted round the end.
  int children(int steps) const {
    if (steps == 0) return (right > 0 ? 1 : 0) + (left > 0 ? 1 : 0);
    return steps == right || steps == right + 1 ? 0 : 1;
  }

  int right;
  int left;
};

class MeshTable {
 public:
  explicit MeshTable(const Task& task)
      : task_(task), rows_(task.grid.rows), columns_(task.grid.columns), torus_(task.grid.torus) {}

  std::size_t sent(Rank rank) const {
    const int row = rank / columns_;
    const int column = rank % columns_;
    const bool is_root = rank == task_.root;
    switch (task_.op) {
      case Op::all_reduce: {
        const Sizes by_column = even(task_.count, columns_);
        const Sizes by_row = even(by_column[static_cast<std::size_t>(column)], rows_);
        return scatter(by_column, column) + scatter(by_row, row) + gather(by_row, row, torus_) +
               gather(by_column, column, torus_);
      }
      case Op::reduce_scatter:
        return scatter(chunks_of_rows(), row) + scatter(chunks_in(row), column);
      case Op::all_gather:
        return gather(chunks_of_rows(), row, torus_) + gather(chunks_in(row), column, torus_);
      case Op::broadcast:
        return task_.count * children(row, column);
      case Op::reduce:
        return is_root ? 0 : task_.count;
      default:
        return (is_root ? 0 : 1) + children(row, column);
    }
  }

  int depth() const {
    const int along = rows_ - 1 + columns_ - 1;
    const int farthest = row_reach().farthest() + column_reach().farthest();
    switch (task_.op) {
      case Op::all_reduce:
        return 2 * along;
      case Op::reduce_scatter:
      case Op::all_gather:
        return along;
      case Op::barrier:
        return 2 * farthest;
      default:
        return farthest;
    }
  }

 private:
  Sizes chunks_in(int row) const {
    Sizes chunks;
    for (Rank rank = row * columns_; rank < (row + 1) * columns_; ++rank) {
      chunks.push_back(task_.chunks[static_cast<std::size_t>(rank)].size());
    }
    return chunks;
  }
  Sizes chunks_of_rows() const {
    Sizes chunks;
    for (int row = 0; row < rows_; ++row) chunks.push_back(sum(chunks_in(row)));
    return chunks;
  }

  Reach row_reach() const { return {columns_, task_.root % columns_, torus_}; }
  Reach column_reach() const { return {rows_, task_.root / columns_, torus_}; }
  std::size_t children(int row, int column) const {
    const int down = (row - task_.root / columns_ + rows_) % rows_;
    const int right = (column - task_.root % columns_ + columns_) % columns_;
    const int along_row = down == 0 ? row_reach().children(right) : 0;
    return static_cast<std::size_t>(along_row + column_reach().children(down));
  }

  const Task& task_;
  int rows_;
  int columns_;
  bool torus_;
};

}  // namespace

PredictedCost mesh_by_table(const Task& task) {
  const MeshTable table(task);
  PredictedCost cost;
  for (Rank rank = 0; rank < task.world(); ++rank) cost.elements_sent.push_back(table.sent(rank));
  cost.depth = table.depth();
  return cost;
}

}  // namespace lockstep::schedule::testing
