// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/llama/shard_rules.h"

namespace lockstep::model::llama {

std::span<const ShardRule> shard_rules() {
  static constexpr ShardRule kRules[] = {
      {"model.embed_tokens.weight", Shard::vocabulary},
      {"model.layers.*.input_layernorm.weight", Shard::replicated},
      {"model.layers.*.self_attn.q_proj.weight", Shard::heads},
      {"model.layers.*.self_attn.k_proj.weight", Shard::kv_heads},
      {"model.layers.*.self_attn.v_proj.weight", Shard::kv_heads},
      {"model.layers.*.self_attn.o_proj.weight", Shard::head_columns},
      {"model.layers.*.post_attention_layernorm.weight", Shard::replicated},
      {"model.layers.*.mlp.gate_proj.weight", Shard::rows},
      {"model.layers.*.mlp.up_proj.weight", Shard::rows},
      {"model.layers.*.mlp.down_proj.weight", Shard::columns},
      {"model.norm.weight", Shard::replicated},
      {"lm_head.weight", Shard::vocabulary},
  };
  return kRules;
}

}  // namespace lockstep::model::llama
