// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/groups.h"

namespace lockstep::train {
namespace {

comm::Communicator group_of(const comm::Communicator& world, const Mesh& mesh, Axis axis) {
  if (mesh.size(axis) == 1) return {};
  if (mesh.size(axis) == mesh.world()) return world;
  return world.split(mesh.group_index(world.rank(), axis), mesh.place_in_group(world.rank(), axis),
                     std::string(name_of(axis)));
}

}  // namespace

Groups make_groups(const comm::Communicator& world, const Mesh& mesh) {
  return {.world = world,
          .data = group_of(world, mesh, Axis::data),
          .pipeline = group_of(world, mesh, Axis::pipeline),
          .tensor = group_of(world, mesh, Axis::tensor)};
}

}  // namespace lockstep::train
