// SPDX-License-Identifier: Apache-2.0
//
// LLaMA: RMSNorm before each branch, rotary positions, grouped-query attention, SwiGLU, no biases.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/kernels/compute/rotary/frequencies.h"
#include "lockstep/model/block.h"

namespace lockstep::model::llama {

struct Config {
  std::int64_t layers = 6;
  std::int64_t width = 384;
  std::int64_t heads = 6;
  std::int64_t kv_heads = 2;
  std::int64_t head_width = 64;
  std::int64_t ffn_width = 1024;
  std::int64_t vocabulary = 4096;
  std::int64_t positions = 2048;  // the most places a sequence can have
  double rope_theta = 10000.0;
  std::optional<kernels::RotaryScaling> rope_scaling = std::nullopt;
  float norm_epsilon = 1e-5F;
  float dropout = 0.0F;  // of the embeddings and of what each branch adds
  bool tied = false;     // the head shares the embedding's weight
};

Model make(const Config& config);

}  // namespace lockstep::model::llama
