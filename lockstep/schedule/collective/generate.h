// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// The program of `rank` for the collective. Pure: equal arguments give equal programs. Any world >= 1 and any
// count, zero and fewer elements than ranks included. Throws UsageError where validate() or supports() would
// refuse.
Program generate(const CollectiveSpec& spec, Rank rank);

}  // namespace lockstep::schedule
