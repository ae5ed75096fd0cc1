// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/model/block.h"
#include "lockstep/model/parameters.h"
#include "lockstep/nn/key_value_cache.h"

namespace lockstep::model {

// Reads one sequence token by token and tells what may come next. Every block keeps a cache, so that a token
// costs one pass of one place.
class Decoder {
 public:
  // Both must outlive it. `capacity`: the most tokens that it will read, at most the places of the model.
  Decoder(const Model& model, const Parameters& parameters, std::int64_t capacity);

  // Reads on, and returns the logits (fp32) of the token that follows the last one. UsageError when there is
  // no room for the tokens. There is at least one.
  std::vector<float> read(std::span<const std::int32_t> tokens);

  std::int64_t length() const { return length_; }  // tokens read so far

 private:
  const Model& model_;
  const Parameters& parameters_;
  std::vector<nn::KeyValueCache> caches_;  // by block
  std::int64_t length_ = 0;
};

}  // namespace lockstep::model
