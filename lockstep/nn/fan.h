// SPDX-License-Identifier: Apache-2.0
//
// The beginning of a branch that is computed lane by lane, and what both of its ends are made of. The other
// end is in linear_sum.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/additions.h"
#include "lockstep/nn/lanes.h"

namespace lockstep::nn {

struct Fan {
  // The input of each lane here: all tokens, [sequences, length, width].
  std::vector<at::Tensor> inputs;
  // Where functions between the two ends may leave their additions on the way back. They run while the
  // gradient of the branch's input is summed over the members. Null: nothing is summed. Shared with the
  // functions that are recorded.
  std::shared_ptr<Additions> additions;
};

// `x` holds the tokens that lie here (Lanes::held). On the way back the gradients of all lanes are summed in
// the lane tree.
Fan fan_out(const at::Tensor& x, std::int64_t sequences, const Lanes& lanes);

// The pieces, which record nothing.
//
// Room for sums over lanes of rows of `width`: a row for each token of all runs, the full ones.
at::Tensor room_for_sums(const Lanes& lanes, std::int64_t width, const at::TensorOptions& options);
// `room` holds the sums over the lanes here. Returns the sums over all lanes, of the tokens that are held.
at::Tensor sum_over_members(const at::Tensor& room, const Lanes& lanes);
// What of `room` belongs to the tokens that are held.
at::Tensor held_of(const at::Tensor& room, const Lanes& lanes);
// The rows of all tokens, of those that are held.
at::Tensor gather_tokens(const at::Tensor& held, const Lanes& lanes);

}  // namespace lockstep::nn
