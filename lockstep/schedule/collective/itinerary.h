// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: all_to_all as travel. A *parcel* is the block that one rank, its origin,
// has for another, its destination. An algorithm says which parcels a rank hands to which neighbours, stage
// by stage; where they lie meanwhile is the business of mailroom.h.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule {

struct Parcel {
  Rank origin = 0;
  Rank destination = 0;

  bool operator==(const Parcel&) const = default;
};

// Parcels that travel together, in this order, as one message.
struct Delivery {
  Rank peer = 0;
  std::vector<Parcel> parcels;
};

// What one rank does at the same time.
struct Stage {
  std::vector<Delivery> sends;
  std::vector<Delivery> receives;
};

// The travels that one rank has a part in. Of every parcel not its own it is given, it passes on or keeps
// all.
using Itinerary = std::vector<Stage>;

// The itinerary of `rank` among `world`, each of which has one parcel for every other.
Itinerary direct_itinerary(Rank rank, int world);  // everyone to everyone
Itinerary ring_itinerary(Rank rank, int world);    // neighbours of a ring, the shorter way round
Itinerary line_itinerary(Rank rank, int world);    // neighbours of a line
Itinerary tree_itinerary(Rank rank, int world);    // along the edges of the two trees
Itinerary binary_itinerary(Rank rank, int world);  // ways of 1, 2, 4, ... ranks: of halving_doubling
Itinerary mesh_itinerary(Rank rank, const GridShape& grid);  // along the row, then along the column

// The farthest that a parcel of `origin` goes round a ring up (direction 1) or down (-1).
int ring_reach(int world, Rank origin, int direction);

// The next larger way that has the power of two `hop` in it, after `way`, which has it.
constexpr int next_way(int way, int hop) {
  return (way + 1) | hop;
}

// Any of these by name; a mesh of `grid`.
Itinerary flat_itinerary(Algorithm algorithm, Rank rank, int world, const GridShape& grid);

// The algorithm of the spec.
Itinerary itinerary_of(const CollectiveSpec& spec, Rank rank);

// Appends a message, unless there is nothing in it.
void add(std::vector<Delivery>& deliveries, Rank peer, std::vector<Parcel> parcels);

// Some ranks that exchange parcels among them. Where member a has something for member b, it is these
// parcels, which may come from elsewhere and have further to go.
struct Party {
  std::vector<Rank> members;
  std::function<std::vector<Parcel>(int a, int b)> parcels;
};

// Appends the itinerary of a member: what it would be among the members alone, with the party's ranks and
// parcels. Members that have no parcel for another send nothing.
void append(Itinerary& whole, const Itinerary& among_members, const Party& party);

}  // namespace lockstep::schedule
