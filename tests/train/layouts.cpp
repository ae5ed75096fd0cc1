// SPDX-License-Identifier: Apache-2.0
#include "tests/train/layouts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::train {
namespace {

using schedule::PipelineSchedule;

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::naive,       PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
                                           PipelineSchedule::zbh1,        PipelineSchedule::zbv};

// With 5 layers there are 7 blocks: four stages have room for one chunk each.
std::vector<schedule::PipelineSpec> pipelines_of(int stages) {
  if (stages == 1) return {{}};
  std::vector<schedule::PipelineSpec> specs;
  for (const PipelineSchedule schedule : kSchedules) {
    const bool has_chunks = schedule == PipelineSchedule::interleaved || schedule == PipelineSchedule::zbv;
    if (has_chunks && stages == 4) continue;
    specs.push_back({.schedule = schedule,
                     .stages = stages,
                     .virtual_stages = schedule == PipelineSchedule::interleaved ? 3 : 1});
  }
  return specs;
}

}  // namespace

std::string shown(const Layout& layout) {
  return fmt::format("lanes from {}, tensor {}{}, {} stages of {}, ZeRO {} on {} hosts, recompute {}",
                     fmt::join(layout.lanes.first_lane, " "), layout.tensor,
                     layout.sequence_parallel ? " with tokens divided" : "", layout.pipeline.stages,
                     name_of(layout.pipeline.schedule), layout.zero_stage, layout.hosts,
                     layout.recompute_every);
}

Setting setting_of(SmallModel model, DType dtype) {
  return {.dtype = dtype,
          .micro_batches = 2,
          .bucket_elements = 20'000,
          .dropout = 0.1F,
          .is_gpt = model == SmallModel::gpt,
          .is_tied = model != SmallModel::llama_with_2_kv_heads,
          .layers = 5,
          .width = 64,
          .heads = 8,
          .kv_heads = model == SmallModel::llama_with_2_kv_heads ? 2 : 4,
          .vocabulary = 1003,
          .steps = 5,
          .tensor_lanes = kTensorLanes};
}

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts;
  const auto add = [&](const Layout& layout) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      if (layout.lanes.world() == 1 && zero_stage > 0) continue;
      for (const int recompute : {0, 1}) {
        layouts.push_back(layout);
        layouts.back().zero_stage = zero_stage;
        layouts.back().recompute_every = recompute;
      }
      if (layout.lanes.world() < 4 || zero_stage == 0) continue;
      layouts.push_back(layout);
      layouts.back().zero_stage = zero_stage;
      layouts.back().hosts = 2;
    }
  };
  for (const int tensor : {1, 2, 4}) {
    for (const bool sequence_parallel : {false, true}) {
      for (const int stages : {1, 2, 4}) {
        for (const int data : {1, 2, 3, 4}) {
          if (stages * data * tensor > 8) continue;
          for (const schedule::PipelineSpec& pipeline : pipelines_of(stages)) {
            add({.lanes = even_ownership(kLayoutLanes, data),
                 .pipeline = pipeline,
                 .tensor = tensor,
                 .sequence_parallel = sequence_parallel});
          }
        }
      }
    }
  }
  return layouts;
}

void expect_bits_of_one_process(const Layout& layout, const Setting& setting, const Outcome& alone) {
  Setting on_layout = setting;
  on_layout.pipeline = layout.pipeline;
  on_layout.zero_stage = layout.zero_stage;
  on_layout.hosts = layout.hosts;
  on_layout.recompute_every = layout.recompute_every;
  on_layout.tensor = layout.tensor;
  on_layout.sequence_parallel = layout.sequence_parallel;
  for (const Outcome& outcome : train(layout.lanes, on_layout)) expect_same(outcome, alone, shown(layout));
}

}  // namespace lockstep::train
