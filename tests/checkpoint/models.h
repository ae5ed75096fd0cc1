// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/spec/run_spec.h"

namespace lockstep::checkpoint::testing {

inline spec::Model llama_model() {
  return {.name = spec::ModelFamily::llama,
          .layers = 3,
          .width = 48,
          .heads = 4,
          .kv_heads = 2,
          .head_width = 16,
          .ffn_width = 100,
          .vocab_size = 300,
          .max_seq_len = 64,
          .rope_theta = 50000,
          .norm_eps = 1e-6,
          .tied_embeddings = false};
}

inline spec::Model scaled_llama_model() {
  spec::Model model = llama_model();
  model.rope_scaling = spec::RopeScaling::llama3;
  model.rope_factor = 32;
  model.rope_low_freq_factor = 1.5;
  model.rope_high_freq_factor = 5;
  model.rope_original_seq_len = 16;
  return model;
}

inline spec::Model gpt_model() {
  return {.name = spec::ModelFamily::gpt,
          .layers = 2,
          .width = 48,
          .heads = 3,
          .kv_heads = 3,
          .head_width = 16,
          .ffn_width = 96,
          .vocab_size = 300,
          .max_seq_len = 64};
}

}  // namespace lockstep::checkpoint::testing
