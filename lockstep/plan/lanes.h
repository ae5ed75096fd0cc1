// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/mesh/lanes.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::plan {

// Who owns which lanes when the run begins on `world` workers. UsageError as workload_of().
LaneOwnership first_ownership(const spec::RunSpec& run, int world);

}  // namespace lockstep::plan
