// SPDX-License-Identifier: Apache-2.0
//
// Which rank of a pipeline holds which piece of the model.
//
// The model is cut into *parts*, numbered in the order of the forward pass. Every rank (stage) holds the same
// number of them, its *chunks*, numbered likewise:
//
//   round_robin, 3 stages, 2 chunks          v_shape, 3 stages (always 2 chunks)
//     rank    0  1  2                          rank    0  1  2
//     chunk 0 0  1  2                          chunk 0 0  1  2
//     chunk 1 3  4  5                          chunk 1 5  4  3
#pragma once

#include "lockstep/base/rank.h"

namespace lockstep::schedule {

enum class PlacementShape { round_robin, v_shape };

struct Placement {
  int stages = 1;
  int chunks = 1;  // of each rank
  PlacementShape shape = PlacementShape::round_robin;

  struct Holder {
    Rank rank = 0;
    int chunk = 0;
    bool operator==(const Holder&) const = default;
  };

  int parts() const { return stages * chunks; }
  int part_of(Rank rank, int chunk) const;
  Holder holder_of(int part) const;

  bool operator==(const Placement&) const = default;
};

}  // namespace lockstep::schedule
