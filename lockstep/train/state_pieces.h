// SPDX-License-Identifier: Apache-2.0
//
// Which elements of the training state a rank writes into a checkpoint, and which it needs from one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/mesh/runs.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// Elements of this rank's share of a bucket that belong to one parameter.
struct StatePiece {
  std::string parameter;  // of the whole model
  std::size_t bucket = 0;
  Range share;        // counted from the begin of the share
  Runs in_parameter;  // where they are in the whole parameter
};

// Pure: the pieces of all ranks together have every element of every parameter exactly once. Ranks that have
// the same elements write a part of them each.
std::vector<StatePiece> pieces_to_write(const Holding& holding);

// All of the shares `own`, by bucket, whoever has the same; of elements that tensor lanes share, those of the
// first of these lanes. Shares of ranks that share out alike have pieces that are equal or have no element in
// common.
std::vector<StatePiece> pieces_of(const Holding& holding, std::span<const Range> own);

// Elements of a parameter of the layout, counted from its begin.
struct HeldPart {
  std::size_t parameter = 0;
  Range elements;
};

// What this rank computes with or updates, and what it updates.
std::vector<HeldPart> parts_with_values(const Holding& holding);
std::vector<HeldPart> parts_with_moments(const Holding& holding);

}  // namespace lockstep::train
