// SPDX-License-Identifier: Apache-2.0
//
// Dense layers with biases and GELU, for samples that are rows of numbers; the head has no bias.
#pragma once

#include <cstdint>

#include "lockstep/model/block.h"

namespace lockstep::model::mlp {

struct Config {
  std::int64_t inputs = 64;
  std::int64_t layers = 2;
  std::int64_t width = 128;
  std::int64_t classes = 10;
  float dropout = 0.0F;  // of what each layer hands on
};

Model make(const Config& config);

}  // namespace lockstep::model::mlp
