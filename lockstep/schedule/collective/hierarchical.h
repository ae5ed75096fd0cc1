// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/phases.h"

namespace lockstep::schedule {

// Private to schedule/collective: what the hosts do, and what happens between them.
std::vector<Phase> hierarchical_phases(const CollectiveSpec& spec);

}  // namespace lockstep::schedule
