// SPDX-License-Identifier: Apache-2.0
//
// The promise of the project over the whole product of layouts.
#include "tests/train/layouts.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

class AllLayouts : public ::testing::TestWithParam<std::tuple<SmallModel, DType>> {};
INSTANTIATE_TEST_SUITE_P(Models, AllLayouts,
                         ::testing::Combine(::testing::Values(SmallModel::gpt,
                                                              SmallModel::llama_with_4_kv_heads,
                                                              SmallModel::llama_with_2_kv_heads),
                                            ::testing::Values(DType::fp32, DType::bf16)));

TEST_P(AllLayouts, GiveTheBitsOfOneProcess) {
  const auto [model, dtype] = GetParam();
  const Setting setting = setting_of(model, dtype);
  const Outcome alone = train(even_ownership(kLayoutLanes, 1), setting).front();
  const std::vector<Layout> layouts = all_layouts();
  ASSERT_GT(layouts.size(), 1000U);
  for (const Layout& layout : layouts) expect_bits_of_one_process(layout, setting, alone);
}

TEST_P(AllLayouts, OfEightPartsGiveTheBitsOfOneProcess) {
  const auto [model, dtype] = GetParam();
  const Setting setting = setting_of(model, dtype, kLayersOfEightParts);
  const Outcome alone = train(even_ownership(kLayoutLanes, 1), setting).front();
  for (const Layout& layout : layouts_of_eight_parts()) expect_bits_of_one_process(layout, setting, alone);
}

}  // namespace
}  // namespace lockstep::train
