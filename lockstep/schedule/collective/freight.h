// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: formulas for all_to_all, without following a single parcel.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule {

// What some ranks have for each other: from[a] * to[b] parcels (itinerary.h) go from a to b, at least one.
struct Freight {
  std::vector<std::size_t> from;
  std::vector<std::size_t> to;

  int world() const { return static_cast<int>(from.size()); }
  bool is_even() const;  // alike for all
};

// What carrying it takes: the parcels that each rank sends, and messages that must follow one another.
struct Carriage {
  std::vector<std::size_t> sent;
  int depth = 0;
};

// By any algorithm but hierarchical; a mesh of `grid`.
Carriage carriage_of(Algorithm algorithm, const Freight& freight, const GridShape& grid);

// Adds what a part of the ranks sends.
void add_sent(Carriage& whole, const Carriage& part, const std::vector<Rank>& members);

}  // namespace lockstep::schedule
