// SPDX-License-Identifier: Apache-2.0
//
// From what the processes of a world have kept of a run into its weights, whoever held it before.
#pragma once

#include <optional>

#include "lockstep/train/kept_state.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// All ranks of the holding's world together, by elastic::plan_healing(). None when nobody has kept anything,
// or not all that is needed: the weights are as they were then. Raises as require_equal_pieces()
// (replicas.h), before anything is given.
std::optional<Reached> heal(const KeptState& kept, const Holding& holding, Weights& weights);

}  // namespace lockstep::train
