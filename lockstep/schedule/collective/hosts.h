// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: how hierarchical programs divide ranks and work among hosts.
#pragma once

#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule {

// Host h holds the ranks [first[h], first[h] + size[h]); a rank's place in its host is its *seat*.
struct HostLayout {
  explicit HostLayout(const std::vector<int>& ranks_per_host);

  int hosts() const { return static_cast<int>(size.size()); }
  int host_of(Rank rank) const;
  std::vector<Rank> ranks_of(int host) const;
  // The ranks in this seat, host by host; every host must have it.
  std::vector<Rank> ranks_in_seat(int seat) const;

  std::vector<Rank> first;
  std::vector<int> size;
};

// How many seats take part in the exchange between hosts, each for its own share of the elements: as many as
// the smallest host has. One when the inner algorithm cannot scatter (reduce_scatter, all_reduce); then seat
// 0 is the leader of its host. For rooted operations and the barrier always one.
int owners_per_host(const CollectiveSpec& spec);

// How ranks stand where a mesh is a part of a hierarchy: the most even grid, which is no torus.
GridShape part_grid(int world);

}  // namespace lockstep::schedule
