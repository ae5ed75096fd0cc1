// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a branch that is computed lane by lane.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"

namespace lockstep::nn {

// The input of each lane here: all tokens, [sequences, length, width]. `x` holds the tokens that lie here
// (Lanes::held). On the way back the gradients of all lanes are summed in the lane tree.
std::vector<at::Tensor> fan_out(const at::Tensor& x, std::int64_t sequences, const Lanes& lanes);

// The sum of what all lanes give, in the lane tree; `partials` are those of the lanes here. With divided
// tokens the sums of the tokens that are held here: [tokens, width].
at::Tensor fan_in(const std::vector<at::Tensor>& partials, const Lanes& lanes);

// The pieces of both, which record nothing.
//
// Room for sums over lanes of rows of `width`: a row for each token of all runs, the full ones.
at::Tensor room_for_sums(const Lanes& lanes, std::int64_t width, const at::TensorOptions& options);
// `room` holds the sums over the lanes here. Returns the sums over all lanes, of the tokens that are held.
at::Tensor sum_over_members(const at::Tensor& room, const Lanes& lanes);
// The rows of all tokens, of those that are held.
at::Tensor gather_tokens(const at::Tensor& held, const Lanes& lanes);

}  // namespace lockstep::nn
