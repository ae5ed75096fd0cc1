// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "lockstep/cli/chaos/records.h"
#include "lockstep/cli/chaos/victim.h"

namespace lockstep::cli {

inline constexpr double kUntilItsEnd = std::numeric_limits<double>::infinity();

// Does to the job what the plan says, and returns when the job has ended, or `time_s` after its first step
// began; gives what was done, by time. Interrupted when a signal asks this process to end; CommError when the
// job makes no step for ten minutes.
std::vector<InjectedFault> disturb(Victim& victim, std::span<const Fault> plan, double time_s = kUntilItsEnd);

}  // namespace lockstep::cli
