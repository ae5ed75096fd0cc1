// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/mesh.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// The ranks that one works with.
struct Groups {
  comm::Communicator world = {};     // all
  comm::Communicator data = {};      // those that hold the same part of the model
  comm::Communicator pipeline = {};  // those that compute the same lanes with the other parts
  comm::Communicator tensor = {};    // those that compute each of its layers together
  // Of `data`: those that share out what ZeRO shares out, and those of other hosts that have the same share.
  comm::Communicator sharing = {};
  comm::Communicator copies = {};
};

// All ranks call it together. UsageError as data_grid() when hosts have copies each.
Groups make_groups(const comm::Communicator& world, const Mesh& mesh,
                   spec::ZeroScope scope = spec::ZeroScope::world);

}  // namespace lockstep::train
