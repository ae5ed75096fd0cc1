// SPDX-License-Identifier: Apache-2.0
//
// The layouts that a small model is trained on, to be compared with one process.
#pragma once

#include <string>
#include <vector>

#include "tests/train/step_rig.h"

namespace lockstep::train {

struct Layout {
  LaneOwnership lanes;  // of the data-parallel ranks
  schedule::PipelineSpec pipeline;
  int zero_stage = 0;
  int recompute_every = 0;
  int tensor = 1;
  bool sequence_parallel = false;
  int hosts = 0;  // as Setting has them
};
std::string shown(const Layout& layout);

inline constexpr int kLayoutLanes = 4;
inline constexpr int kTensorLanes = 4;

// Blocks are two more: the embedding and the last norm.
inline constexpr int kLayers = 5;
inline constexpr int kLayersOfEightParts = 6;

// A gpt or a llama of odd shapes, with dropout and accumulation.
enum class SmallModel { gpt, llama_with_4_kv_heads, llama_with_2_kv_heads };
Setting setting_of(SmallModel model, DType dtype, int layers = kLayers);

// Those of at most 8 ranks: data 1 to 4 x tensor 1, 2, 4 x pipeline 1, 2, 4 with each schedule x ZeRO 0 to 3
// x recompute none or all x sequence parallelism. With 3 data-parallel ranks lanes are uneven. With 4 of them
// ZeRO also with a copy on each of two hosts. Without those that kLayers have too few blocks for: four stages
// of several parts.
std::vector<Layout> all_layouts();

// Those four stages, for kLayersOfEightParts.
std::vector<Layout> layouts_of_eight_parts();

// Trains on the layout; every rank must end with the bits of `alone`.
void expect_bits_of_one_process(const Layout& layout, const Setting& setting, const Outcome& alone);

}  // namespace lockstep::train
