// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/mesh.h"

namespace lockstep {

// How the ranks of a group lie on hosts: as many on each, one host after the other.
struct HostGrid {
  int hosts = 1;
  int ranks_per_host = 1;

  int host_of(Rank place) const { return place / ranks_per_host; }
  int place_on_host(Rank place) const { return place % ranks_per_host; }
  bool operator==(const HostGrid&) const = default;
};

// That of every group of data-parallel ranks. `host_of` by rank of the mesh: equal numbers share a host.
// UsageError when one lies otherwise.
HostGrid data_grid(const Mesh& mesh, std::span<const int> host_of);

}  // namespace lockstep
