// SPDX-License-Identifier: Apache-2.0
//
// The end of a branch that is computed lane by lane.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/additions.h"
#include "lockstep/nn/lanes.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// The last linear functions of the lanes here; there are several lanes.
struct LaneLinears {
  const std::vector<at::Tensor>& inputs;         // by lane: all tokens, [sequences, length, in]
  const std::vector<const Parameter*>& weights;  // by lane: [out, in]
  std::shared_ptr<Additions> additions;          // Fan::additions
};

// The sum of x weight^T over all lanes, in the lane tree: [sequences, length, out], or with divided tokens
// those that are held here, [tokens, out]. Computed in pieces (lane_pieces()), whose sums over the members
// are under way while the next ones are computed.
at::Tensor linear_sum(const LaneLinears& linears, const Lanes& lanes);

}  // namespace lockstep::nn
