// SPDX-License-Identifier: Apache-2.0
//
// all_to_all of a hierarchy. Every host has M *owners*, its first seats; owner i speaks for its host to the
// owners i of the other hosts, about all parcels for seats i, i + M, i + 2 M, ... there.
//
//   inside    a seat hands each owner what it has for the owner's seats on other hosts, and everyone on its
//             own host its parcel;
//   between   owners in the same seat exchange what their hosts have for each other;
//   hand out  an owner gives the seats behind the owners theirs.
#include "lockstep/schedule/collective/hosts.h"
#include "lockstep/schedule/collective/itinerary.h"

namespace lockstep::schedule {
namespace {

class HostTravel {
 public:
  HostTravel(const CollectiveSpec& spec, Rank rank)
      : spec_(spec),
        hosts_(spec.ranks_per_host),
        owners_(owners_per_host(spec)),
        host_(hosts_.host_of(rank)),
        seat_(rank - hosts_.first[host_]) {}

  Itinerary itinerary() const {
    Itinerary whole;
    append(whole, among(spec_.inner, seat_, hosts_.size[host_]), inside());
    if (seat_ < owners_) append(whole, among(spec_.outer, host_, hosts_.hosts()), between());
    append(whole, direct_itinerary(seat_, hosts_.size[host_]), handing_out());
    return whole;
  }

 private:
  Itinerary among(Algorithm algorithm, Rank index, int size) const {
    return flat_itinerary(algorithm, index, size, part_grid(size));
  }

  Party inside() const {
    return {hosts_.ranks_of(host_), [this](int a, int b) {
              const Rank first = hosts_.first[host_];
              std::vector<Parcel> parcels;
              for (int host = 0; host < hosts_.hosts(); ++host) {
                if (host == host_) {
                  parcels.push_back({first + a, first + b});
                } else if (b < owners_) {
                  add_parcels(parcels, first + a, host, b);
                }
              }
              return parcels;
            }};
  }

  Party between() const {
    return {hosts_.ranks_in_seat(seat_), [this](int a, int b) {
              std::vector<Parcel> parcels;
              for (Rank origin : hosts_.ranks_of(a)) add_parcels(parcels, origin, b, seat_);
              return parcels;
            }};
  }

  Party handing_out() const {
    return {hosts_.ranks_of(host_), [this](int a, int b) {
              std::vector<Parcel> parcels;
              if (b < owners_ || b % owners_ != a) return parcels;
              for (Rank origin = 0; origin < spec_.world; ++origin) {
                if (hosts_.host_of(origin) != host_) parcels.push_back({origin, hosts_.first[host_] + b});
              }
              return parcels;
            }};
  }

  // What a rank has for the seats of one owner of another host.
  void add_parcels(std::vector<Parcel>& parcels, Rank origin, int host, int owner) const {
    for (int seat = owner; seat < hosts_.size[host]; seat += owners_) {
      parcels.push_back({origin, hosts_.first[host] + seat});
    }
  }

  const CollectiveSpec& spec_;
  HostLayout hosts_;
  int owners_;
  int host_;
  int seat_;
};

}  // namespace

Itinerary itinerary_of(const CollectiveSpec& spec, Rank rank) {
  if (spec.algorithm == Algorithm::hierarchical) return HostTravel(spec, rank).itinerary();
  return flat_itinerary(spec.algorithm, rank, spec.world, spec.grid);
}

}  // namespace lockstep::schedule
