// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/model_of.h"

#include "lockstep/base/error.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/gpt/shard_rules.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/llama/shard_rules.h"
#include "lockstep/model/mlp/model.h"
#include "lockstep/model/mlp/shard_rules.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/spec/workload.h"

namespace lockstep::train {
namespace {

model::Model gpt_of(const spec::Model& spec) {
  return model::gpt::make({.layers = spec.layers,
                           .width = spec.width,
                           .heads = spec.heads,
                           .ffn_width = spec.ffn_width,
                           .vocabulary = spec.vocab_size,
                           .positions = spec.max_seq_len,
                           .norm_epsilon = static_cast<float>(spec.norm_eps),
                           .dropout = static_cast<float>(spec.dropout)});
}

std::optional<kernels::RotaryScaling> rope_scaling_of(const spec::Model& spec) {
  if (spec.rope_scaling == spec::RopeScaling::none) return std::nullopt;
  return kernels::RotaryScaling{.factor = spec.rope_factor,
                                .low_freq_factor = spec.rope_low_freq_factor,
                                .high_freq_factor = spec.rope_high_freq_factor,
                                .original_length = static_cast<double>(spec.rope_original_seq_len)};
}

model::Model llama_of(const spec::Model& spec) {
  return model::llama::make({.layers = spec.layers,
                             .width = spec.width,
                             .heads = spec.heads,
                             .kv_heads = spec.kv_heads,
                             .head_width = spec.head_width,
                             .ffn_width = spec.ffn_width,
                             .vocabulary = spec.vocab_size,
                             .positions = spec.max_seq_len,
                             .rope_theta = spec.rope_theta,
                             .rope_scaling = rope_scaling_of(spec),
                             .norm_epsilon = static_cast<float>(spec.norm_eps),
                             .dropout = static_cast<float>(spec.dropout),
                             .tied = spec.tied_embeddings});
}

model::Model mlp_of(const spec::Model& spec) {
  return model::mlp::make({.inputs = spec.max_seq_len,
                           .layers = spec.layers,
                           .width = spec.width,
                           .classes = spec.vocab_size,
                           .dropout = static_cast<float>(spec.dropout)});
}

}  // namespace

model::Model model_of(const spec::Model& spec) {
  switch (spec.name) {
    case spec::ModelFamily::gpt:
      return gpt_of(spec);
    case spec::ModelFamily::llama:
      return llama_of(spec);
    case spec::ModelFamily::mlp:
      return mlp_of(spec);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

Division division_of(const spec::Model& spec) {
  const parallel::DividedSizes sizes = {
      .heads = spec.heads, .kv_heads = spec.kv_heads, .ffn_width = spec.ffn_width};
  switch (spec.name) {
    case spec::ModelFamily::gpt:
      return {model::gpt::shard_rules(), sizes};
    case spec::ModelFamily::llama:
      return {model::llama::shard_rules(), sizes};
    case spec::ModelFamily::mlp:
      return {model::mlp::shard_rules(), {}};
  }
  LOCKSTEP_CHECK(false);
  return {};
}

void require_division(const spec::RunSpec& run, const spec::Places& places) {
  spec::at_place_of(places, {"parallelism.tensor_lanes", "parallelism.tensor"}, [&] {
    parallel::check_tensor_lanes(division_of(run.model).sizes,
                                 static_cast<int>(spec::tensor_lanes(run.parallelism)),
                                 static_cast<int>(run.parallelism.tensor));
  });
}

}  // namespace lockstep::train
