// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/ways.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tests/schedule/tree_by_text.h"

namespace lockstep::schedule::testing {
namespace {

using Way = std::vector<Rank>;

Way steps(Rank from, int number, int direction, int world) {
  Way way;
  for (int step = 0; step < number; ++step) way.push_back((from + direction * step + world) % world);
  return way;
}

Way on_ring(Rank from, Rank to, int world) {
  const int up = (to - from + world) % world;
  const bool goes_up = 2 * up == world ? from % 2 == 0 : 2 * up < world;
  return goes_up ? steps(from, up, 1, world) : steps(from, world - up, -1, world);
}

Way on_line(Rank from, Rank to, int world) {
  return steps(from, std::abs(to - from), from < to ? 1 : -1, world);
}

Way by_powers_of_two(Rank from, Rank to, int world) {
  Way way;
  const int all = (to - from + world) % world;
  for (int hop = 1; hop <= all; hop *= 2) {
    if ((all & hop) != 0) way.push_back((from + all % hop) % world);
  }
  return way;
}

// That in which the rank has children. One rank of an odd world has none in either; it takes the second.
TreeByText tree_of_blocks(Rank rank, int world) {
  const TreeByText first(world, false);
  return first.children(first.position_of(rank)).empty() ? TreeByText(world, true) : first;
}

// Up to where the destination is below, and down to it.
Way over_tree(Rank from, Rank to, int world) {
  if (from == to) return {};
  const TreeByText tree = tree_of_blocks(from, world);
  const int home = tree.position_of(to);
  Way way;
  int at = tree.position_of(from);
  for (; !tree.is_below(home, at); at = tree.above(at).front()) way.push_back(tree.rank_at(at));
  Way down;
  for (const int top : tree.above(home)) {
    if (tree.is_below(top, at)) down.push_back(tree.rank_at(top));
  }
  way.insert(way.end(), down.rbegin(), down.rend());
  return way;
}

Way on_axis(int from, int to, int length, bool torus) {
  return torus && length > 2 ? on_ring(from, to, length) : on_line(from, to, length);
}

// Along its row to the column of the destination, and along that.
Way on_grid(Rank from, Rank to, const GridShape& grid) {
  Way way;
  const int row = from / grid.columns;
  const int column = to % grid.columns;
  for (const int at : on_axis(from % grid.columns, column, grid.columns, grid.torus)) {
    way.push_back(row * grid.columns + at);
  }
  for (const int at : on_axis(row, to / grid.columns, grid.rows, grid.torus)) {
    way.push_back(at * grid.columns + column);
  }
  return way;
}

int depth_over_tree(int world) {
  std::size_t farthest = 0;
  for (Rank rank = 0; rank < world; ++rank) {
    const TreeByText tree = tree_of_blocks(rank, world);
    farthest = std::max(farthest, tree.above(tree.position_of(rank)).size());
  }
  return TreeByText(world, false).height() + static_cast<int>(farthest);
}

}  // namespace

std::vector<Rank> way_of(Algorithm algorithm, Rank origin, Rank destination, const GridShape& grid) {
  const int world = grid.rows * grid.columns;
  switch (algorithm) {
    case Algorithm::ring:
      return on_ring(origin, destination, world);
    case Algorithm::tree:
      return over_tree(origin, destination, world);
    case Algorithm::halving_doubling:
      return by_powers_of_two(origin, destination, world);
    case Algorithm::mesh:
      return on_grid(origin, destination, grid);
    default:
      return origin == destination ? Way{} : Way{origin};
  }
}

int depth_of_ways(Algorithm algorithm, const GridShape& grid) {
  const int world = grid.rows * grid.columns;
  if (world == 1) return 0;
  switch (algorithm) {
    case Algorithm::ring:
      return world / 2;
    case Algorithm::tree:
      return depth_over_tree(world);
    case Algorithm::halving_doubling:
      return std::bit_width(static_cast<unsigned>(world - 1));
    case Algorithm::mesh:
      return grid.torus ? grid.rows / 2 + grid.columns / 2 : grid.rows - 1 + grid.columns - 1;
    default:
      return 1;
  }
}

}  // namespace lockstep::schedule::testing
