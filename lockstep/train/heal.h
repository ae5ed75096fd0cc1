// SPDX-License-Identifier: Apache-2.0
//
// From what the processes of a world have kept of a run into its weights, whoever held it before.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/train/kept_state.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// Elements that one rank gives another: those that a kept piece and a needed one have in common, in ascending
// order.
struct Gift {
  Rank from = 0;
  Rank to = 0;
  std::size_t kept = 0;    // which piece of the giver
  std::size_t needed = 0;  // which of the receiver
  bool operator==(const Gift&) const = default;
};

// Pure: gives every needed element once, to a rank from itself where it can. By rank: what it has kept and
// what it needs; kept pieces that are not equal have nothing in common. None when something is not there.
std::optional<std::vector<Gift>> plan_gifts(const std::vector<std::vector<TensorPiece>>& kept,
                                            const std::vector<std::vector<TensorPiece>>& needed);

// All ranks of the holding's world together. The newest step that any of them has kept counts, and what
// others have kept of older ones does not. None when nobody has kept anything, or not all that is needed: the
// weights are as they were then.
std::optional<Reached> heal(const KeptState& kept, const Holding& holding, Weights& weights);

}  // namespace lockstep::train
