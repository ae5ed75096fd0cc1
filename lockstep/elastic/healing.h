// SPDX-License-Identifier: Apache-2.0
//
// How a new generation puts the state of a run together again from what its workers have kept of it. Pure:
// everybody who knows what all have kept and need comes to the same plan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/elastic/message.h"
#include "lockstep/mesh/runs.h"

namespace lockstep::elastic {

// Elements of a tensor of the training state, which has a number.
struct TensorPiece {
  std::size_t tensor = 0;
  Runs elements;
  bool operator==(const TensorPiece&) const = default;
};
using TensorPieces = std::vector<TensorPiece>;

// Its numbers: equal for equal pieces alone, and all that there is to tell of one.
using PieceNumbers = std::array<std::size_t, 5>;
PieceNumbers numbers_of(const TensorPiece& piece);
TensorPiece piece_of(const PieceNumbers& numbers);

// Elements that one rank gives another: those that a kept piece and a needed one have in common, in ascending
// order.
struct Gift {
  Rank from = 0;
  Rank to = 0;
  std::size_t kept = 0;    // which piece of the giver
  std::size_t needed = 0;  // which of the receiver
  bool operator==(const Gift&) const = default;
};

// Gives every needed element, to a rank from itself where it can. By rank: what it has kept and what it
// needs. Only where kept pieces overlap and are not equal, which they do when their holders have last trained
// in different generations, may an element be given twice. None when something is not there.
std::optional<std::vector<Gift>> plan_gifts(const std::vector<TensorPieces>& kept,
                                            const std::vector<TensorPieces>& needed);

// What a rank has kept, and of which step.
struct Kept {
  std::int64_t step = kNoStep;  // kNoStep: nothing
  TensorPieces pieces = {};
};

struct HealingPlan {
  std::int64_t step = 0;
  Rank teller = 0;  // the first that has kept something of it
  std::vector<Gift> gifts;
};

// By rank. The newest step that any of them has kept counts, and what others have kept of older ones does
// not. None when nobody has kept anything, or not all that is needed.
std::optional<HealingPlan> plan_healing(std::vector<Kept> kept, const std::vector<TensorPieces>& needed);

// Calls body(number among those of `a`, number among those of `b`, how many follow each other) for the
// elements that both have, in ascending order.
template <typename Body>
void each_common(const Runs& a, const Runs& b, const Body& body) {
  for (std::size_t run = 0; run < b.count; ++run) {
    const std::size_t begin = b.first + run * b.distance;
    each_overlap(a, {begin, begin + b.length}, [&](std::size_t in_a, std::size_t element, std::size_t count) {
      body(in_a, run * b.length + (element - begin), count);
    });
  }
}

// How many those are.
std::size_t count_common(const Runs& a, const Runs& b);

}  // namespace lockstep::elastic
