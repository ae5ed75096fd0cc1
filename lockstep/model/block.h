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
#include "lockstep/nn/lanes.h"
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
  // Who computes the lanes of layers; null: there is one lane. Outlives what is recorded.
  const nn::LaneTeam* team = nullptr;

  nn::Lanes lanes() const { return {team, tokens.defined() ? tokens.numel() : targets.numel()}; }
};

// The parameters of a block, in the order in which it declared them. With several lanes each lane has what it
// computes with: a part of those that are divided, and a copy of those that all lanes share.
class BlockParameters {
 public:
  using OfLane = std::span<const nn::Parameter* const>;

  // `all`: those of the first lane here, then those of the next, ... Must stay as long as this is used.
  // NOLINTNEXTLINE(google-explicit-constructor)
  BlockParameters(OfLane all, std::size_t lanes = 1) : all_(all), lanes_(lanes) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  BlockParameters(const std::vector<const nn::Parameter*>& of_one_lane) : all_(of_one_lane) {}

  std::size_t size() const { return all_.size() / lanes_; }
  std::size_t lanes() const { return lanes_; }
  OfLane of_lane(std::size_t index) const { return all_.subspan(index * size(), size()); }

  // When there is one lane.
  const nn::Parameter* operator[](std::size_t index) const { return all_[index]; }
  // One that all lanes share: the value of the first lane here, and the gradients of all that are here.
  nn::Parameter shared(std::size_t index) const;
  // What each lane here has of one that is divided.
  std::vector<const nn::Parameter*> parts(std::size_t index) const;

 private:
  OfLane all_;
  std::size_t lanes_ = 1;
};

class Block {
 public:
  virtual ~Block() = default;

  virtual std::vector<ParameterSpec> parameters() const = 0;

  // `hidden` ([sequences, length, width], or [samples, width] of dense data) comes from the block before; the
  // first block gets none. When lanes divide the tokens it is [tokens, width]: those that are held here
  // (nn::Lanes). Autograd records.
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
