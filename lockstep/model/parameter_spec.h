// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::model {

// Where the first values of a parameter come from.
enum class Initial : std::uint8_t { zeros, ones, normal };

// How a parameter is divided among the ranks of a tensor-parallel group. `rows`: its first dimension;
// `columns`: its second; `heads` and `kv_heads`: its first dimension by whole attention heads.
enum class Shard : std::uint8_t { replicated, rows, columns, heads, kv_heads };

// A parameter as the model's author declares it. Two blocks that declare the same name share it.
struct ParameterSpec {
  std::string name;  // as in Hugging Face files of the model
  std::vector<std::int64_t> shape;
  Initial initial = Initial::normal;
  float deviation = 0.02F;  // of a normal start
  bool decays = true;       // weight decay applies
  Shard shard = Shard::replicated;

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t size : shape) count *= size;
    return count;
  }
  bool operator==(const ParameterSpec&) const = default;
};

}  // namespace lockstep::model
