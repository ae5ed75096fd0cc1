// SPDX-License-Identifier: Apache-2.0
//
// A fixed sample of layouts_test, and layouts drawn at random.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"

#include "tests/train/layouts.h"

namespace lockstep::train {
namespace {

constexpr SmallModel kModels[] = {SmallModel::gpt, SmallModel::llama_with_4_kv_heads,
                                  SmallModel::llama_with_2_kv_heads};

// A tensor rank whose part of the vocabulary nobody reads or predicts would prove nothing.
TEST(Layouts, EveryStepReadsAndPredictsInEveryLaneOfTheVocabulary) {
  const Setting setting = setting_of(SmallModel::gpt, DType::fp32);
  const std::int64_t rows = (setting.vocabulary + kTensorLanes - 1) / kTensorLanes;
  for (int step = 0; step < setting.steps; ++step) {
    std::set<std::int64_t> read;
    std::set<std::int64_t> predicted;
    for (int lane = 0; lane < kLayoutLanes; ++lane) {
      const model::Batch batch = batch_at(step, lane, 0, setting.vocabulary);
      EXPECT_LT(batch.tokens.max().item<std::int64_t>(), setting.vocabulary);
      for (std::int64_t i = 0; i < batch.tokens.numel(); ++i) {
        read.insert(batch.tokens.flatten()[i].item<std::int64_t>() / rows);
        predicted.insert(batch.targets.flatten()[i].item<std::int64_t>() / rows);
      }
    }
    EXPECT_THAT(read, ::testing::ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(predicted, ::testing::ElementsAre(0, 1, 2, 3));
  }
}

TEST(Layouts, ASampleOfAllGivesTheBitsOfOneProcess) {
  const std::vector<Layout> layouts = all_layouts();
  std::size_t next = 0;
  for (const SmallModel model : kModels) {
    for (const DType dtype : {DType::fp32, DType::bf16}) {
      const Setting setting = setting_of(model, dtype);
      const Outcome alone = train(even_ownership(kLayoutLanes, 1), setting).front();
      // A prime: every model and dtype has other layouts.
      for (; next < layouts.size(); next += 97) expect_bits_of_one_process(layouts[next], setting, alone);
      next -= layouts.size();
    }
  }
}

TEST(Layouts, ASampleOfEightPartsGivesTheBitsOfOneProcess) {
  const Setting setting = setting_of(SmallModel::llama_with_4_kv_heads, DType::bf16, kLayersOfEightParts);
  const Outcome alone = train(even_ownership(kLayoutLanes, 1), setting).front();
  const std::vector<Layout> layouts = layouts_of_eight_parts();
  for (std::size_t i = 0; i < layouts.size(); i += 19) expect_bits_of_one_process(layouts[i], setting, alone);
}

// Draws from what a user may ask for.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  LaneOwnership lanes(int count, int ranks) {
    LaneOwnership lanes = {{0}};
    for (int rank = 1; rank < ranks; ++rank) lanes.first_lane.push_back(up_to(count));
    lanes.first_lane.push_back(count);
    std::ranges::sort(lanes.first_lane);
    return lanes;
  }

  Setting setting() {
    Setting setting = setting_of(kModels[up_to(2)], up_to(1) == 0 ? DType::fp32 : DType::bf16);
    setting.micro_batches = 1 + up_to(2);
    setting.layers = 1 + up_to(5);
    setting.steps = 2;
    setting.tensor_lanes = 1 << up_to(3);
    setting.bucket_elements = std::int64_t{1} << up_to(20);
    return setting;
  }

  Layout layout(const Setting& setting, int lane_count) {
    using schedule::PipelineSchedule;
    const int blocks = setting.layers + 2;
    Layout layout;
    layout.pipeline.stages = 1 + up_to(std::min(3, blocks - 1));
    layout.pipeline.schedule = static_cast<PipelineSchedule>(up_to(5));
    const int most_chunks = blocks / layout.pipeline.stages;
    if (layout.pipeline.schedule == PipelineSchedule::interleaved) {
      layout.pipeline.virtual_stages = 1 + up_to(std::min(3, most_chunks - 1));
    }
    if (layout.pipeline.schedule == PipelineSchedule::zbv && most_chunks < 2) {
      layout.pipeline.schedule = PipelineSchedule::zbh1;
    }
    while (2 * layout.tensor <= std::min(setting.tensor_lanes, 8 / layout.pipeline.stages) && up_to(1) == 1) {
      layout.tensor *= 2;
    }
    layout.sequence_parallel = up_to(1) == 1;
    layout.lanes = lanes(lane_count, 1 + up_to(8 / layout.pipeline.stages / layout.tensor - 1));
    layout.zero_stage = up_to(3);
    layout.recompute_every = up_to(3);
    layout.hosts = up_to(layout.lanes.world());
    if (layout.hosts > 0 && layout.lanes.world() % layout.hosts != 0) layout.hosts = 0;
    return layout;
  }

 private:
  std::mt19937_64 random_;
};

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// `./dev layouts SECONDS SEED` runs it for as long as it is told to; otherwise a few.
TEST(Layouts, RandomOnesGiveTheBitsOfOneProcess) {
  const std::uint64_t seed = number_in_environment("LOCKSTEP_LAYOUT_SEED", 1);
  const std::chrono::seconds told(number_in_environment("LOCKSTEP_LAYOUT_SECONDS", 0));
  Draw draw(seed);
  const auto begin = Clock::now();
  int tried = 0;
  for (; (tried < 8 || Clock::now() - begin < told) && !HasFailure(); ++tried) {
    const Setting setting = draw.setting();
    const int lanes = 1 << draw.up_to(3);
    const Outcome alone = train(even_ownership(lanes, 1), setting).front();
    for (int i = 0; i < 3; ++i) {
      const Layout layout = draw.layout(setting, lanes);
      // So that one that ends the program is known.
      if (told.count() > 0) {
        std::cerr << shown(layout) << "; layers " << setting.layers << ", micro-batches "
                  << setting.micro_batches << ", buckets of " << setting.bucket_elements << '\n';
      }
      SCOPED_TRACE("seed " + std::to_string(seed) + ", layout " + std::to_string(3 * tried + i));
      expect_bits_of_one_process(layout, setting, alone);
    }
  }
  RecordProperty("layouts", 3 * tried);
}

}  // namespace
}  // namespace lockstep::train
