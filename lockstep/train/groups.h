// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/mesh.h"

namespace lockstep::train {

// The ranks that one works with.
struct Groups {
  comm::Communicator world = {};     // all
  comm::Communicator data = {};      // those that hold the same part of the model
  comm::Communicator pipeline = {};  // those that compute the same lanes with the other parts
  comm::Communicator tensor =
      {};  // those that compute the same lanes with the same layers, each a part of it
};

// All ranks call it together.
Groups make_groups(const comm::Communicator& world, const Mesh& mesh);

}  // namespace lockstep::train
