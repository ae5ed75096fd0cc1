// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/itinerary.h"
#include "lockstep/schedule/collective/program.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

// Private to schedule/collective: the program of an all_to_all from the travels of its parcels, whose blocks
// have task.count elements. Parcels that travel together and do not lie together are first copied to scratch;
// those that are at home are copied out while others travel on.
Program mailroom_program(const Task& task, const Itinerary& itinerary);

}  // namespace lockstep::schedule
