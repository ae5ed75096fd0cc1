// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/cli/bench/system.h"

namespace lockstep::cli {

// The sum of lanes, each a buffer of its own on the rank that owns it (Case::lanes; one on each rank when
// there are none). By the algorithm "lanes" it is summed in the lane tree; by any other one, which `options`
// name, every rank adds its own lanes in one pass before the ranks sum what they got. all_reduce or
// reduce_scatter.
std::unique_ptr<Trial> make_lane_trial(const comm::Communicator& communicator, const Case& what,
                                       const comm::Options& options);

}  // namespace lockstep::cli
