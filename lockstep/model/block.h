// SPDX-License-Identifier: Apache-2.0
//
// A model is a list of blocks. A block is written for one device and knows nothing about ranks: it declares
// its parameters and computes with those it is given.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/model/parameter_spec.h"
#include "lockstep/nn/dropout.h"
#include "lockstep/nn/key_value_cache.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::model {

// What a micro-batch brings to every block.
struct Batch {
  at::Tensor tokens;         // int32, [sequences, length]
  at::Tensor targets;        // int32, the same shape; a negative one does not count
  at::Tensor features = {};  // of dense data instead of tokens: fp32, [samples, columns]; targets: [samples]
  nn::Samples samples = {};  // that the rows are, for dropout
  // For reading a sequence piece by piece: the place of the first token, and what the block that is being
  // computed remembers of the places before. Null: everything is in `tokens`.
  std::int64_t first_place = 0;
  nn::KeyValueCache* cache = nullptr;
};

// The parameters of a block, in the order in which it declared them.
using BlockParameters = std::span<const nn::Parameter* const>;

class Block {
 public:
  virtual ~Block() = default;

  virtual std::vector<ParameterSpec> parameters() const = 0;

  // `hidden` ([sequences, length, width], or [samples, width] of dense data) comes from the block before; the
  // first block gets none. Autograd records.
  virtual at::Tensor forward(const at::Tensor& hidden, const Batch& batch,
                             BlockParameters parameters) const = 0;
};

// What stands at the end of a model: the weight that turns hidden states into logits. It has no
// bias.
struct Head {
  ParameterSpec weight;  // [vocabulary, width]
};

struct Model {
  std::vector<std::unique_ptr<const Block>> blocks;  // what the last one gives goes to the head
  Head head;
};

// Every parameter once, in the order of the blocks, the head's last unless it is shared. InternalError when
// two blocks declare the same name differently.
std::vector<ParameterSpec> parameters_of(const Model& model);

}  // namespace lockstep::model
