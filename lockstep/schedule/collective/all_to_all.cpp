// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/all_to_all.h"

#include <algorithm>
#include <utility>

#include "lockstep/schedule/collective/freight.h"
#include "lockstep/schedule/collective/hosts.h"
#include "lockstep/schedule/collective/itinerary.h"
#include "lockstep/schedule/collective/mailroom.h"

namespace lockstep::schedule {
namespace {

// The three steps of hosts_itinerary.cpp.
class HostCarriage {
 public:
  explicit HostCarriage(const CollectiveSpec& spec)
      : spec_(spec), hosts_(spec.ranks_per_host), owners_(owners_per_host(spec)) {}

  Carriage carriage() const {
    Carriage whole{.sent = std::vector<std::size_t>(spec_.world, 0), .depth = 0};
    int inside = 0;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      inside = std::max(inside, add(whole, spec_.inner, freight_inside(host), hosts_.ranks_of(host)));
    }
    int between = 0;
    for (int owner = 0; owner < owners_; ++owner) {
      between = add(whole, spec_.outer, freight_between(owner), hosts_.ranks_in_seat(owner));
    }
    whole.depth = inside + between + (hand_out(whole) ? 1 : 0);
    return whole;
  }

 private:
  // Returns the depth.
  int add(Carriage& whole, Algorithm algorithm, const Freight& freight,
          const std::vector<Rank>& members) const {
    const Carriage part = carriage_of(algorithm, freight, part_grid(freight.world()));
    add_sent(whole, part, members);
    return part.depth;
  }

  // Seats of a host that an owner is there for, itself included.
  std::size_t seats_of(int owner, int host) const {
    return static_cast<std::size_t>((hosts_.size[host] - owner + owners_ - 1) / owners_);
  }

  Freight freight_inside(int host) const {
    const auto seats = static_cast<std::size_t>(hosts_.size[host]);
    Freight freight{.from = std::vector<std::size_t>(seats, 1), .to = std::vector<std::size_t>(seats, 1)};
    for (int other = 0; other < hosts_.hosts(); ++other) {
      if (other == host) continue;
      for (int owner = 0; owner < owners_; ++owner) freight.to[owner] += seats_of(owner, other);
    }
    return freight;
  }

  Freight freight_between(int owner) const {
    Freight freight;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      freight.from.push_back(hosts_.size[host]);
      freight.to.push_back(seats_of(owner, host));
    }
    return freight;
  }

  // Whether anything was left to hand out.
  bool hand_out(Carriage& whole) const {
    bool any = false;
    for (int host = 0; host < hosts_.hosts(); ++host) {
      const auto from_elsewhere = static_cast<std::size_t>(spec_.world - hosts_.size[host]);
      for (int seat = owners_; seat < hosts_.size[host]; ++seat) {
        whole.sent[hosts_.first[host] + seat % owners_] += from_elsewhere;
        any |= from_elsewhere > 0;
      }
    }
    return any;
  }

  const CollectiveSpec& spec_;
  HostLayout hosts_;
  int owners_;
};

Carriage carriage_of(const CollectiveSpec& spec) {
  if (spec.algorithm == Algorithm::hierarchical) return HostCarriage(spec).carriage();
  const std::vector<std::size_t> one_each(spec.world, 1);
  return carriage_of(spec.algorithm, {.from = one_each, .to = one_each}, spec.grid);
}

}  // namespace

Program generate_all_to_all(const CollectiveSpec& spec, Rank rank) {
  return mailroom_program(task_of(spec, rank), itinerary_of(spec, rank));
}

PredictedCost all_to_all_cost(const CollectiveSpec& spec) {
  if (spec.count == 0) return {.elements_sent = std::vector<std::size_t>(spec.world, 0)};
  Carriage carriage = carriage_of(spec);
  for (std::size_t& sent : carriage.sent) sent *= spec.count;
  return {.elements_sent = std::move(carriage.sent), .elements_combined = 0, .depth = carriage.depth};
}

}  // namespace lockstep::schedule
