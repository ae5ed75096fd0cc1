// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lockstep/elastic/membership.h"
#include "lockstep/rendezvous/placement.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/run.h"

namespace lockstep::train {

// What a generation of workers is given for its training. `goes_on`: the run was begun by another generation.
// Called on every worker when all are connected; what the hooks refer to must stay until `leave`, or the end.
using Equip = std::function<RunHooks(const comm::Communicator& world, bool goes_on)>;

// A run whose workers come and go: trains in one generation after the other, and goes on from what the
// workers of the one before have in memory, or from its newest checkpoint when that is not everything, or
// from what it was begun with when it has none yet. No bit of it depends on when who came or went.
// `placement` is that of this process. `leave` is called before it waits for its next place: what only one
// rank of a generation may have is another's then, even if this worker gets no place. Errors as
// run_training(), but for communication errors, which end a generation and not the run: Dismissed when the
// run goes on without this worker, CommError when the coordinator is gone, CorruptState when this worker's
// state was wrong twice.
RunSummary train_in_generations(const spec::RunSpec& run, elastic::Membership& membership,
                                const rendezvous::Placement& placement, const Equip& equip,
                                const std::function<void()>& leave);

}  // namespace lockstep::train
