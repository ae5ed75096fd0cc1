// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/rank.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// This rank's weights are not those that most ranks have which should have the same: nothing that it holds
// can be trusted. Others get a CommError at the same moment.
class CorruptWeights : public Error {
 public:
  using Error::Error;
};

// Ranks of the world whose weights have other bits than those of most ranks that hold the same part of the
// model; when no bits are those of most, all ranks with that part. All ranks of the holding's world together;
// all get the same. None where weights are shared out, and no two ranks have the same.
std::vector<Rank> ranks_with_other_weights(const Holding& holding, const Weights& weights);

// Raises CorruptWeights on those, and CommError naming them on the others; nothing when there are none.
void require_equal_weights(const Holding& holding, const Weights& weights, std::int64_t step);

}  // namespace lockstep::train
