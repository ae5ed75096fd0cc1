// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/decoder.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/linear.h"

namespace lockstep::model {

Decoder::Decoder(const Model& model, const Parameters& parameters, std::int64_t capacity)
    : model_(model), parameters_(parameters), caches_(model.blocks.size(), nn::KeyValueCache(capacity)) {}

std::vector<float> Decoder::read(std::span<const std::int32_t> tokens) {
  LOCKSTEP_CHECK(!tokens.empty());
  const auto count = static_cast<std::int64_t>(tokens.size());
  Batch batch = {.tokens = at::empty({1, count}, at::kInt), .targets = {}, .first_place = length_};
  std::copy(tokens.begin(), tokens.end(), batch.tokens.data_ptr<std::int32_t>());
  at::Tensor hidden;
  for (std::size_t block = 0; block < model_.blocks.size(); ++block) {
    batch.cache = &caches_[block];
    hidden = forward_only(*model_.blocks[block], hidden, batch, parameters_.of_block(block));
  }
  length_ += count;
  const at::NoGradGuard not_recording;
  const at::Tensor last = hidden.narrow(1, count - 1, 1).contiguous();
  const at::Tensor logits = nn::linear(last, parameters_.head()).to(at::kFloat).contiguous();
  return {logits.data_ptr<float>(), logits.data_ptr<float>() + logits.numel()};
}

}  // namespace lockstep::model
