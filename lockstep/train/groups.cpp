// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/groups.h"

#include "lockstep/mesh/host_grid.h"

namespace lockstep::train {
namespace {

void share_inside_hosts(Groups& groups, const HostGrid& grid) {
  if (grid.hosts == 1) return;
  groups.sharing = {};
  if (grid.ranks_per_host == 1) return;  // there is nobody on the host to share with
  const int host = grid.host_of(groups.data.rank());
  const int place = grid.place_on_host(groups.data.rank());
  groups.sharing = groups.data.split(host, place, "data in a host");
  groups.copies = groups.data.split(place, host, "data over hosts");
}

}  // namespace

Groups make_groups(const comm::Communicator& world, const Mesh& mesh, spec::ZeroScope scope) {
  Groups groups = {.world = world,
                   .data = world.split(mesh, Axis::data),
                   .pipeline = world.split(mesh, Axis::pipeline),
                   .tensor = world.split(mesh, Axis::tensor)};
  groups.sharing = groups.data;
  if (scope == spec::ZeroScope::host) share_inside_hosts(groups, data_grid(mesh, world.hosts()));
  return groups;
}

}  // namespace lockstep::train
