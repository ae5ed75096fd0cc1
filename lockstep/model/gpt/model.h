// SPDX-License-Identifier: Apache-2.0
//
// GPT-2: learned positions, LayerNorm before each branch, GELU, biases everywhere, the head tied to the
// embedding.
#pragma once

#include <cstdint>

#include "lockstep/model/block.h"

namespace lockstep::model::gpt {

struct Config {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t ffn_width = 3072;
  std::int64_t vocabulary = 50257;
  std::int64_t positions = 1024;
  float norm_epsilon = 1e-5F;
  float dropout = 0.0F;  // of the embeddings and of what each branch adds
};

Model make(const Config& config);

}  // namespace lockstep::model::gpt
