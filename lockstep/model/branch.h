// SPDX-License-Identifier: Apache-2.0
//
// How a block says what is computed lane by lane (nn/lanes.h). With one lane all of this is plain
// computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "lockstep/model/block.h"
#include "lockstep/nn/additions.h"

namespace lockstep::model {

// One lane of a branch.
struct LaneBranch {
  const at::Tensor& x;                       // all tokens: [sequences, length, width]
  BlockParameters::OfLane p;                 // what the lane has of the block's parameters
  std::shared_ptr<nn::Additions> additions;  // nn::Fan

  // nn::linear() with parameters of the lane, given by their numbers.
  at::Tensor linear(const at::Tensor& input, std::size_t weight, std::optional<std::size_t> bias = {}) const;
};

// The last linear function of a branch, by the numbers of its parameters. Each lane has some columns of the
// weight; all lanes share the bias.
struct LastLinear {
  std::size_t weight = 0;
  std::optional<std::size_t> bias = {};
};

// A branch: from `x`, what comes out of a norm, to what is added to the residual stream. `of_lane` gives what
// one lane has for the last linear function; that, the sum over the lanes, and the bias, which is added once,
// are computed here.
at::Tensor over_lanes(const at::Tensor& x, const Batch& batch, BlockParameters parameters,
                      const LastLinear& last, const std::function<at::Tensor(const LaneBranch&)>& of_lane);

// Which parameters of a block are the table of tokens, whose rows are divided, and that of places, which is
// not.
struct TokenTables {
  std::size_t table = 0;
  std::optional<std::size_t> places = {};
  std::int64_t vocabulary = 0;
};
// The rows of the batch's tokens: what enters the first layer.
at::Tensor token_rows(const Batch& batch, BlockParameters parameters, const TokenTables& tables);

}  // namespace lockstep::model
