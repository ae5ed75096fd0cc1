// SPDX-License-Identifier: Apache-2.0
//
// The models once more in plain libtorch, as a reader of the papers would write them: the outside that ours
// must agree with. Weights come by name.
#pragma once

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/mlp/model.h"

namespace lockstep::model {

using Weights = std::map<std::string, at::Tensor>;

at::Tensor plain_gpt_logits(const gpt::Config& config, const Weights& weights, const Batch& batch);
at::Tensor plain_mlp_logits(const mlp::Config& config, const Weights& weights, const Batch& batch);
at::Tensor plain_llama_logits(const llama::Config& config, const Weights& weights, const Batch& batch);

// The mean loss over the targets that count.
at::Tensor plain_loss(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace lockstep::model
