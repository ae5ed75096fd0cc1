// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/freight.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/itinerary.h"
#include "lockstep/schedule/collective/mesh.h"
#include "lockstep/schedule/collective/two_trees.h"

namespace lockstep::schedule {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

// Where all ranks do alike, the first speaks for all.
template <typename Sent>
Counts sent_by_each(const Freight& freight, Sent sent) {
  if (freight.is_even()) return Counts(freight.from.size(), sent(0));
  Counts counts;
  for (Rank rank = 0; rank < freight.world(); ++rank) counts.push_back(sent(rank));
  return counts;
}

Carriage by_everyone(const Freight& freight) {
  const std::size_t all = sum(freight.to);
  return {sent_by_each(freight, [&](Rank rank) { return freight.from[rank] * (all - freight.to[rank]); }),
          freight.world() > 1 ? 1 : 0};
}

// Parcels for `count` ranks of a ring, from `first` on.
class RingSums {
 public:
  explicit RingSums(const Counts& to) : world_(static_cast<int>(to.size())), before_(2 * to.size() + 1, 0) {
    for (std::size_t i = 0; i + 1 < before_.size(); ++i) before_[i + 1] = before_[i] + to[i % to.size()];
  }
  std::size_t of(int first, int count) const {
    const int begin = (first + world_) % world_;
    return before_[begin + count] - before_[begin];
  }

 private:
  int world_;
  Counts before_;
};

// A rank sends on what comes from up to half round the ring behind it and is for ranks before it.
Carriage by_ring(const Freight& freight) {
  const int world = freight.world();
  const RingSums parcels(freight.to);
  const auto sent = [&](Rank rank) {
    std::size_t all = 0;
    for (int direction : {1, -1}) {
      for (int behind = 0; behind < world / 2; ++behind) {
        const Rank origin = (rank - direction * behind + world) % world;
        const int ahead = ring_reach(world, origin, direction) - behind;
        all += freight.from[origin] * parcels.of(direction > 0 ? rank + 1 : rank - ahead, ahead);
      }
    }
    return all;
  };
  return {sent_by_each(freight, sent), world / 2};
}

// To the right goes what is for the right and comes from the left or from the rank itself.
Carriage by_line(const Freight& freight) {
  Carriage carriage{.sent = {}, .depth = freight.world() - 1};
  const std::size_t all_from = sum(freight.from);
  const std::size_t all_to = sum(freight.to);
  std::size_t from_left = 0;
  std::size_t to_left = 0;
  for (Rank rank = 0; rank < freight.world(); ++rank) {
    const std::size_t leftward = (all_from - from_left) * to_left;
    from_left += freight.from[rank];
    to_left += freight.to[rank];
    carriage.sent.push_back(leftward + from_left * (all_to - to_left));
  }
  return carriage;
}

// A parcel is sent once for every power of two in its way.
Carriage by_binary_ways(const Freight& freight) {
  const int world = freight.world();
  const auto sent = [&](Rank rank) {
    std::size_t parcels = 0;
    for (int hop = 1; hop < world; hop *= 2) {
      for (int way = hop; way < world; way = next_way(way, hop)) {
        const Rank origin = (rank - way % hop + world) % world;
        parcels += freight.from[origin] * freight.to[(origin + way) % world];
      }
    }
    return parcels;
  };
  return {sent_by_each(freight, sent), static_cast<int>(std::bit_width(static_cast<unsigned>(world - 1)))};
}

class TreeCarriage {
 public:
  explicit TreeCarriage(const Freight& freight)
      : freight_(freight), trees_(freight.world()), all_to_(sum(freight.to)) {
    for (Rank rank = 0; rank < freight.world(); ++rank) {
      tree_of_.push_back(trees_.tree_of_children(rank));
      all_from_[tree_of_.back()] += freight.from[rank];
    }
  }

  // Deepest is the way from the farthest origin up to the root and from there down to the farthest rank.
  Carriage carriage() const {
    Carriage carriage{.sent = Counts(freight_.from.size(), 0), .depth = 0};
    for (Rank rank = 0; rank < freight_.world(); ++rank) {
      for (int tree : {0, 1}) add_edge_above(carriage.sent, rank, tree);
      carriage.depth = std::max(carriage.depth, trees_.level_of(rank, tree_of_[rank]) + trees_.height());
    }
    return carriage;
  }

 private:
  void add_edge_above(Counts& sent, Rank rank, int tree) const {
    const std::optional<Rank> parent = trees_.node_of(rank, tree).parent;
    if (!parent) return;
    std::size_t from_below = 0;
    std::size_t to_below = 0;
    for (Rank below : trees_.subtree_of(rank, tree)) {
      if (tree_of_[below] == tree) from_below += freight_.from[below];
      to_below += freight_.to[below];
    }
    sent[rank] += from_below * (all_to_ - to_below);
    sent[*parent] += (all_from_[tree] - from_below) * to_below;
  }

  const Freight& freight_;
  TwoTrees trees_;
  std::vector<int> tree_of_;  // that the parcels of a rank take
  Counts all_from_ = {0, 0};  // by tree
  std::size_t all_to_;
};

Carriage by_row(const Freight& freight, bool torus) {
  return is_ring(freight.world(), torus) ? by_ring(freight) : by_line(freight);
}

// Along a row, a rank has for each column what is for any rank in it; along a column, for each rank what came
// together in its own row.
Carriage by_mesh(const Freight& freight, const GridShape& grid) {
  Counts to_column(grid.columns, 0);
  Counts from_row(grid.rows, 0);
  for (Rank rank = 0; rank < freight.world(); ++rank) {
    to_column[rank % grid.columns] += freight.to[rank];
    from_row[rank / grid.columns] += freight.from[rank];
  }
  Carriage whole{.sent = Counts(freight.from.size(), 0), .depth = 0};
  int row_depth = 0;
  for (int row = 0; row < grid.rows; ++row) {
    std::vector<Rank> members(grid.columns);
    std::iota(members.begin(), members.end(), row * grid.columns);
    Freight part{.from = {}, .to = to_column};
    for (Rank rank : members) part.from.push_back(freight.from[rank]);
    const Carriage along = by_row(part, grid.torus);
    add_sent(whole, along, members);
    row_depth = along.depth;
  }
  for (int column = 0; column < grid.columns; ++column) {
    std::vector<Rank> members;
    Freight part{.from = from_row, .to = {}};
    for (int row = 0; row < grid.rows; ++row) {
      members.push_back(row * grid.columns + column);
      part.to.push_back(freight.to[members.back()]);
    }
    const Carriage along = by_row(part, grid.torus);
    add_sent(whole, along, members);
    whole.depth = row_depth + along.depth;
  }
  return whole;
}

}  // namespace

bool Freight::is_even() const {
  return std::ranges::adjacent_find(from, std::not_equal_to{}) == from.end() &&
         std::ranges::adjacent_find(to, std::not_equal_to{}) == to.end();
}

void add_sent(Carriage& whole, const Carriage& part, const std::vector<Rank>& members) {
  for (std::size_t i = 0; i < members.size(); ++i) whole.sent[members[i]] += part.sent[i];
}

Carriage carriage_of(Algorithm algorithm, const Freight& freight, const GridShape& grid) {
  switch (algorithm) {
    case Algorithm::ring:
      return by_ring(freight);
    case Algorithm::tree:
      return TreeCarriage(freight).carriage();
    case Algorithm::halving_doubling:
      return by_binary_ways(freight);
    case Algorithm::direct:
    case Algorithm::one_shot:
      return by_everyone(freight);
    case Algorithm::mesh:
      return by_mesh(freight, grid);
    case Algorithm::hierarchical:
      break;
  }
  check_failed("algorithm is flat", "a hierarchy is made of other algorithms");
}

}  // namespace lockstep::schedule
