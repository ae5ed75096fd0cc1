// SPDX-License-Identifier: Apache-2.0
//
// all_to_all between neighbours in a row of ranks: a ring, or a line, which is open at its ends. Everything
// that a rank has for one direction leaves in the first stage as one *batch*. In stage s all batches are s -
// 1 ranks from home and go one further; at every rank the batch loses the parcel for it.
#include <algorithm>
#include <utility>

#include "lockstep/schedule/collective/itinerary.h"

namespace lockstep::schedule {
namespace {

class Row {
 public:
  Row(int world, bool closed) : world_(world), closed_(closed) {}

  Itinerary itinerary(Rank rank) const {
    Itinerary stages;
    for (int step = 1; step <= longest_way(); ++step) {
      Stage stage;
      for (int direction : {1, -1}) {
        const int passing = rank - direction * (step - 1);
        const int arriving = passing - direction;
        add(stage.sends, wrap(rank + direction), batch_of(passing, direction, step));
        add(stage.receives, wrap(rank - direction), batch_of(arriving, direction, step));
      }
      stages.push_back(std::move(stage));
    }
    return stages;
  }

 private:
  int longest_way() const { return closed_ ? world_ / 2 : world_ - 1; }
  bool has(int position) const { return closed_ || (position >= 0 && position < world_); }
  Rank wrap(int position) const { return (position + world_) % world_; }

  int reach(Rank origin, int direction) const {
    if (closed_) return ring_reach(world_, origin, direction);
    return direction > 0 ? world_ - 1 - origin : origin;
  }

  // What is left of a batch in a stage, in the order of its blocks in the origin's buffer: so it can be sent
  // on from where it arrived, without what has been taken from one end.
  std::vector<Parcel> batch_of(int home, int direction, int step) const {
    std::vector<Parcel> parcels;
    if (!has(home)) return parcels;
    const Rank origin = wrap(home);
    for (int way = step; way <= reach(origin, direction); ++way) {
      parcels.push_back({origin, wrap(origin + direction * way)});
    }
    if (direction < 0) std::ranges::reverse(parcels);
    return parcels;
  }

  int world_;
  bool closed_;
};

}  // namespace

// In a ring of even size the way to the opposite rank is as long on both sides: parcels of even ranks go up,
// those of odd ones down.
int ring_reach(int world, Rank origin, int direction) {
  const bool to_opposite = world % 2 == 0 && (origin % 2 == 0) == (direction > 0);
  return (world - 1) / 2 + (to_opposite ? 1 : 0);
}

Itinerary ring_itinerary(Rank rank, int world) {
  return Row(world, true).itinerary(rank);
}

Itinerary line_itinerary(Rank rank, int world) {
  return Row(world, false).itinerary(rank);
}

}  // namespace lockstep::schedule
