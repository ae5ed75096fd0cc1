// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::model {

// Where the first values of a parameter come from.
enum class Initial : std::uint8_t { zeros, ones, normal };

// A parameter as the model's author declares it. Two blocks that declare the same name share it.
struct ParameterSpec {
  std::string name;  // as in Hugging Face files of the model
  std::vector<std::int64_t> shape;
  Initial initial = Initial::normal;
  float deviation = 0.02F;  // of a normal start
  bool decays = true;       // weight decay applies

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t size : shape) count *= size;
    return count;
  }
  bool operator==(const ParameterSpec&) const = default;
};

}  // namespace lockstep::model
