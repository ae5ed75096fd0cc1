// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/nn/dropout.h"

namespace lockstep::model {

// Where a transformer layer drops: what its two branches add to the residual stream. The embedding is layer
// 0.
struct LayerDropout {
  nn::DropoutPlace attention;
  nn::DropoutPlace ffn;
};

// `index` counts from 0.
inline LayerDropout dropout_of_layer(float probability, std::int64_t index) {
  const auto layer = static_cast<std::uint64_t>(index) + 1;
  return {{probability, layer, 0}, {probability, layer, 1}};
}

}  // namespace lockstep::model
