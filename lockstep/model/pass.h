// SPDX-License-Identifier: Apache-2.0
//
// Autograd one block at a time: each block is recorded alone, from a detached input, and gone back through
// alone, from a given gradient of its output. Whoever decides about order, memory and communication decides
// between these calls.
#pragma once

#include <ATen/core/Tensor.h>

#include "lockstep/model/block.h"
#include "lockstep/nn/additions.h"

namespace lockstep::model {

// What one block keeps between its forward and its backward pass on one micro-batch.
struct BlockPass {
  at::Tensor input;   // what autograd records from; undefined for the first block
  at::Tensor output;  // with its graph
};

BlockPass forward(const Block& block, const at::Tensor& hidden, const Batch& batch,
                  BlockParameters parameters);

// Nothing is recorded: for evaluation, and for blocks that are computed again on the way back.
at::Tensor forward_only(const Block& block, const at::Tensor& hidden, const Batch& batch,
                        BlockParameters parameters);

// Adds to the gradients of the block's parameters and returns that of its input (undefined for the first
// block). The pass is used up.
at::Tensor backward(BlockPass&& pass, const at::Tensor& output_gradient);

// The same, but what can be added later is left in `later`.
at::Tensor backward(BlockPass&& pass, const at::Tensor& output_gradient, nn::Additions& later);

}  // namespace lockstep::model
