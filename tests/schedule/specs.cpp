// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/specs.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/schedule/collective/generate.h"

namespace lockstep::schedule::testing {

CollectiveSpec flat_spec(Op op, Algorithm algorithm, int world, std::size_t count) {
  CollectiveSpec spec;
  spec.op = op;
  spec.algorithm = algorithm;
  spec.world = world;
  spec.count = count;
  return spec;
}

CollectiveSpec hierarchical_spec(Op op, const std::vector<int>& hosts, Algorithm inner, Algorithm outer) {
  CollectiveSpec spec =
      flat_spec(op, Algorithm::hierarchical, std::accumulate(hosts.begin(), hosts.end(), 0), 0);
  spec.ranks_per_host = hosts;
  spec.inner = inner;
  spec.outer = outer;
  return spec;
}

CollectiveSpec lane_spec(Op op, const LaneOwnership& ownership, std::size_t count) {
  CollectiveSpec spec = flat_spec(op, Algorithm::direct, ownership.world(), count);
  for (Rank rank = 0; rank < ownership.world(); ++rank) {
    spec.pieces.push_back(complete_subtrees(ownership.first_lane[static_cast<std::size_t>(rank)],
                                            ownership.first_lane[static_cast<std::size_t>(rank) + 1]));
  }
  return spec;
}

CollectiveSpec single_lane_spec(Op op, const LaneOwnership& ownership, std::size_t count) {
  CollectiveSpec spec = lane_spec(op, ownership, count);
  for (Rank rank = 0; rank < ownership.world(); ++rank) {
    std::vector<Subtree>& pieces = spec.pieces[static_cast<std::size_t>(rank)];
    pieces.clear();
    for (int lane = 0; lane < ownership.count_of(rank); ++lane) {
      pieces.push_back({ownership.first_lane[static_cast<std::size_t>(rank)] + lane, 1});
    }
  }
  return spec;
}

std::vector<std::size_t> counts_for(int world) {
  const auto ranks = static_cast<std::size_t>(world);
  std::vector<std::size_t> counts = {0, 1, ranks - 1, ranks, 2 * ranks + 3, 1000};
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<Rank> roots_for(Op op, int world) {
  if (op != Op::broadcast && op != Op::reduce) return {0};
  std::vector<Rank> roots;
  const int step = world <= 9 ? 1 : std::max(1, world / 2 - 1);
  for (Rank root = 0; root < world; root += step) roots.push_back(root);
  return roots;
}

std::vector<GridShape> grids_up_to(int most) {
  std::vector<GridShape> grids;
  for (int rows = 1; rows <= most; ++rows) {
    for (int columns = 1; rows * columns <= most; ++columns) {
      grids.push_back({.rows = rows, .columns = columns, .torus = false});
      grids.push_back({.rows = rows, .columns = columns, .torus = true});
    }
  }
  return grids;
}

CollectiveSpec large_spec(CollectiveSpec spec) {
  spec.count = 2 * static_cast<std::size_t>(spec.world) + 3;
  spec.root = spec.op == Op::broadcast || spec.op == Op::reduce ? spec.world / 3 : 0;
  spec.grid = squarest_grid(spec.world, true);
  return spec;
}

std::vector<std::vector<int>> all_host_shapes(int world) {
  if (world == 0) return {{}};
  std::vector<std::vector<int>> shapes;
  for (int first = 1; first <= world; ++first) {
    for (std::vector<int>& rest : all_host_shapes(world - first)) {
      rest.insert(rest.begin(), first);
      shapes.push_back(std::move(rest));
    }
  }
  return shapes;
}

std::vector<std::vector<int>> host_shapes_up_to(int most) {
  std::vector<std::vector<int>> shapes;
  for (int hosts = 1; hosts <= most; ++hosts) {
    for (int ranks = 1; hosts * ranks <= most; ++ranks) {
      shapes.emplace_back(static_cast<std::size_t>(hosts), ranks);
    }
  }
  std::mt19937 random(20);
  for (int shape = 0; shape < 40; ++shape) {
    std::vector<int>& hosts = shapes.emplace_back();
    int left = 2 + static_cast<int>(random() % static_cast<unsigned>(most - 1));
    while (left > 0) {
      hosts.push_back(1 + static_cast<int>(random() % static_cast<unsigned>(left)));
      left -= hosts.back();
    }
  }
  return shapes;
}

std::string describe(const CollectiveSpec& spec) {
  std::string text =
      fmt::format("{} by {}, world {}, count {}, root {}, segments of {}", name_of(spec.op),
                  name_of(spec.algorithm), spec.world, spec.count, spec.root, spec.segment_elements);
  if (spec.algorithm == Algorithm::mesh) {
    text += fmt::format(", {} x {}{}", spec.grid.rows, spec.grid.columns, spec.grid.torus ? " torus" : "");
  }
  if (spec.algorithm == Algorithm::hierarchical) {
    text += fmt::format(", {} inside and {} between hosts of [{}]", name_of(spec.inner), name_of(spec.outer),
                        fmt::join(spec.ranks_per_host, " "));
  }
  for (const std::vector<Subtree>& pieces : spec.pieces) {
    text += " |";
    for (const Subtree& piece : pieces) text += fmt::format(" {}+{}", piece.first, piece.count);
  }
  return text;
}

std::vector<Program> programs_of(const CollectiveSpec& spec) {
  std::vector<Program> programs;
  for (Rank rank = 0; rank < spec.world; ++rank) programs.push_back(generate(spec, rank));
  return programs;
}

}  // namespace lockstep::schedule::testing
