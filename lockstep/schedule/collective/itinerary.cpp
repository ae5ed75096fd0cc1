// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/itinerary.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

std::vector<Delivery> delivered(const std::vector<Delivery>& among_members, const Party& party) {
  std::vector<Delivery> deliveries;
  for (const Delivery& each : among_members) {
    std::vector<Parcel> parcels;
    for (const Parcel& parcel : each.parcels) {
      const std::vector<Parcel> inside = party.parcels(parcel.origin, parcel.destination);
      parcels.insert(parcels.end(), inside.begin(), inside.end());
    }
    add(deliveries, party.members[each.peer], std::move(parcels));
  }
  return deliveries;
}

}  // namespace

void add(std::vector<Delivery>& deliveries, Rank peer, std::vector<Parcel> parcels) {
  if (!parcels.empty()) deliveries.push_back({peer, std::move(parcels)});
}

void append(Itinerary& whole, const Itinerary& among_members, const Party& party) {
  for (const Stage& stage : among_members) {
    whole.push_back({delivered(stage.sends, party), delivered(stage.receives, party)});
  }
}

Itinerary direct_itinerary(Rank rank, int world) {
  Stage stage;
  for (Rank peer : all_but(world, rank)) {
    stage.sends.push_back({peer, {{rank, peer}}});
    stage.receives.push_back({peer, {{peer, rank}}});
  }
  return {std::move(stage)};
}

// J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for all-to-all communications
// in multiport message-passing systems" (1997). A parcel has w ranks to go, and w is a sum of powers of two:
// in stage k it goes 2^k ranks on if that is one of them.
Itinerary binary_itinerary(Rank rank, int world) {
  const auto on_the_way = [world](Rank from, int hop) {
    std::vector<Parcel> parcels;
    for (int way = hop; way < world; way = next_way(way, hop)) {
      const Rank origin = (from - way % hop + world) % world;
      parcels.push_back({origin, (origin + way) % world});
    }
    return parcels;
  };
  Itinerary itinerary;
  for (int hop = 1; hop < world; hop *= 2) {
    const Rank before = (rank - hop + world) % world;
    itinerary.push_back({.sends = {{(rank + hop) % world, on_the_way(rank, hop)}},
                         .receives = {{before, on_the_way(before, hop)}}});
  }
  return itinerary;
}

Itinerary flat_itinerary(Algorithm algorithm, Rank rank, int world, const GridShape& grid) {
  switch (algorithm) {
    case Algorithm::ring:
      return ring_itinerary(rank, world);
    case Algorithm::tree:
      return tree_itinerary(rank, world);
    case Algorithm::halving_doubling:
      return binary_itinerary(rank, world);
    case Algorithm::direct:
    case Algorithm::one_shot:
      return direct_itinerary(rank, world);
    case Algorithm::mesh:
      return mesh_itinerary(rank, grid);
    case Algorithm::hierarchical:
      break;
  }
  check_failed("algorithm is flat", "a hierarchy travels in three steps");
}

}  // namespace lockstep::schedule
