// SPDX-License-Identifier: Apache-2.0
//
// Small models trained for a few steps by ranks that are threads, to compare layouts bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/model/block.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/train/step_runner.h"

namespace lockstep::train {

inline constexpr model::llama::Config kSmallLlama = {.layers = 2,
                                                     .width = 32,
                                                     .heads = 4,
                                                     .kv_heads = 2,
                                                     .head_width = 8,
                                                     .ffn_width = 64,
                                                     .vocabulary = 61,
                                                     .positions = 24,
                                                     .tied = true};

// Gradients are clipped to it in every step.
inline constexpr double kMaxNorm = 0.1;

// Which samples stand at a place of a step, whoever asks: tokens from the whole vocabulary, the last one in
// every batch.
model::Batch batch_at(int step, int lane, int micro_batch, std::int64_t vocabulary);

struct Setting {
  DType dtype = DType::fp32;
  int micro_batches = 2;
  int recompute_every = 0;
  std::int64_t bucket_elements = 1000;
  int zero_stage = 1;
  int hosts = 0;  // that ranks seem to lie on, and have a copy each of what is shared out; 0: not so
  std::string offload_folder = {};
  SumOptions sum = {};
  bool one_batch = false;                 // the same data in every step
  std::vector<LaneOwnership> moves = {};  // before steps 1, 2, ...
  float dropout = 0.0F;
  bool is_gpt = false;
  bool is_tied = true;  // of llama
  int layers = 2;
  std::int64_t width = 32;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;  // of llama
  std::int64_t vocabulary = 61;
  int steps = 4;
  schedule::PipelineSpec pipeline = {};  // but for its micro-batches
  int tensor = 1;                        // ranks that compute each layer together
  int tensor_lanes = 1;
  bool sequence_parallel = false;
};

struct Outcome {
  std::vector<StepResult> steps;
  std::vector<std::byte> weights;  // all that is remembered
  int most_batches = 0;            // of a rank at the same time
};

// One thread per rank; what every rank ends with. The ranks are as many as own lanes, for every stage and
// every share of its layers.
std::vector<Outcome> train(const LaneOwnership& lanes, const Setting& setting);

void expect_same(const Outcome& found, const Outcome& expected, const std::string& what);

}  // namespace lockstep::train
