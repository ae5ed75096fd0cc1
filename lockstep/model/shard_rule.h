// SPDX-License-Identifier: Apache-2.0
//
// How parameters are divided among ranks that share each layer. Data that an engine reads; blocks know
// nothing of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::model {

// What a rank holds of a parameter: all of it, or a share of its rows (first dimension) or columns (second).
// `vocabulary`: rows, one per token. `heads`, `kv_heads`: rows, by whole attention heads; `head_columns`:
// columns, by whole query heads. Ranks share out heads and key-value heads alike, so that a query head and
// its key head are on one rank.
enum class Shard : std::uint8_t { replicated, rows, columns, vocabulary, heads, kv_heads, head_columns };

struct ShardRule {
  std::string_view name;  // of the parameters; a '*' stands for the number of a layer
  Shard shard = Shard::replicated;
  int parts = 1;  // that stand one after another in the divided dimension, each divided alike
};

// The one rule of a parameter. InternalError when there is none, or several.
const ShardRule& rule_of(std::span<const ShardRule> rules, std::string_view parameter);

}  // namespace lockstep::model
