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

// Of the layouts of a model, a kind at a time.
class Product {
 public:
  // Those of at most 8 ranks that have the pipeline.
  void add(const schedule::PipelineSpec& pipeline) {
    for (const int tensor : {1, 2, 4}) {
      for (const bool sequence_parallel : {false, true}) {
        for (const int data : {1, 2, 3, 4}) {
          if (pipeline.stages * data * tensor > 8) continue;
          add_with_zero({.lanes = even_ownership(kLayoutLanes, data),
                         .pipeline = pipeline,
                         .tensor = tensor,
                         .sequence_parallel = sequence_parallel});
        }
      }
    }
  }

  std::vector<Layout> layouts;

 private:
  void add_with_zero(Layout layout) {
    for (const int zero_stage : {0, 1, 2, 3}) {
      layout.zero_stage = zero_stage;
      for (const int recompute : {0, 1}) {
        layouts.push_back(layout);
        layouts.back().recompute_every = recompute;
      }
      if (layout.lanes.world() < 4 || zero_stage == 0) continue;
      layouts.push_back(layout);
      layouts.back().hosts = 2;
    }
  }
};

}  // namespace

std::string shown(const Layout& layout) {
  return fmt::format("lanes from {}, tensor {}{}, {} stages of {}, ZeRO {} on {} hosts, recompute {}",
                     fmt::join(layout.lanes.first_lane, " "), layout.tensor,
                     layout.sequence_parallel ? " with tokens divided" : "", layout.pipeline.stages,
                     name_of(layout.pipeline.schedule), layout.zero_stage, layout.hosts,
                     layout.recompute_every);
}

Setting setting_of(SmallModel model, DType dtype, int layers) {
  return {.dtype = dtype,
          .micro_batches = 2,
          .bucket_elements = 20'000,
          .dropout = 0.1F,
          .is_gpt = model == SmallModel::gpt,
          .is_tied = model != SmallModel::llama_with_2_kv_heads,
          .layers = layers,
          .width = 64,
          .heads = 8,
          .kv_heads = model == SmallModel::llama_with_2_kv_heads ? 2 : 4,
          .vocabulary = 1003,
          .steps = 5,
          .tensor_lanes = kTensorLanes};
}

std::vector<Layout> all_layouts() {
  Product product;
  product.add({});
  for (const int stages : {2, 4}) {
    for (const PipelineSchedule schedule : kSchedules) {
      if (schedule == PipelineSchedule::zbv && stages == 4) continue;
      const bool has_room = schedule == PipelineSchedule::interleaved && stages == 2;
      product.add({.schedule = schedule, .stages = stages, .virtual_stages = has_room ? 3 : 1});
    }
  }
  return product.layouts;
}

std::vector<Layout> layouts_of_eight_parts() {
  Product product;
  product.add({.schedule = PipelineSchedule::interleaved, .stages = 4, .virtual_stages = 2});
  product.add({.schedule = PipelineSchedule::zbv, .stages = 4});
  return product.layouts;
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
