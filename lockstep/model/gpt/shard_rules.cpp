// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/gpt/shard_rules.h"

namespace lockstep::model::gpt {

// What enters a branch is divided by rows and what leaves it by columns, so that a branch ends with one sum
// over the ranks; biases that are added after that sum are on every rank.
std::span<const ShardRule> shard_rules() {
  static constexpr ShardRule kRules[] = {
      {"wte.weight", Shard::vocabulary},
      {"wpe.weight", Shard::replicated},
      {"h.*.ln_1.weight", Shard::replicated},
      {"h.*.ln_1.bias", Shard::replicated},
      {"h.*.attn.c_attn.weight", Shard::heads, 3},
      {"h.*.attn.c_attn.bias", Shard::heads, 3},
      {"h.*.attn.c_proj.weight", Shard::head_columns},
      {"h.*.attn.c_proj.bias", Shard::replicated},
      {"h.*.ln_2.weight", Shard::replicated},
      {"h.*.ln_2.bias", Shard::replicated},
      {"h.*.mlp.c_fc.weight", Shard::rows},
      {"h.*.mlp.c_fc.bias", Shard::rows},
      {"h.*.mlp.c_proj.weight", Shard::columns},
      {"h.*.mlp.c_proj.bias", Shard::replicated},
      {"ln_f.weight", Shard::replicated},
      {"ln_f.bias", Shard::replicated},
  };
  return kRules;
}

}  // namespace lockstep::model::gpt
