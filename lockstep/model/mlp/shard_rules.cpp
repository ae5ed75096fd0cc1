// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/mlp/shard_rules.h"

namespace lockstep::model::mlp {

std::span<const ShardRule> shard_rules() {
  static constexpr ShardRule kRules[] = {
      {"layers.*.weight", Shard::replicated},
      {"layers.*.bias", Shard::replicated},
      {"head.weight", Shard::vocabulary},
  };
  return kRules;
}

}  // namespace lockstep::model::mlp
