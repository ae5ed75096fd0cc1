// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/model_size.h"

#include <map>
#include <numeric>
#include <string_view>

#include <gtest/gtest.h>

#include "lockstep/spec/check.h"
#include "lockstep/spec/presets.h"

namespace lockstep::spec {
namespace {

Model filled(std::string_view preset) {
  RunSpec run;
  run.model = preset_model(preset);
  fill_model(run);
  return run.model;
}

// The published sizes; llama-tiny is our own, summed by hand.
TEST(ParameterCount, OfPresetsIsThePublishedOne) {
  const std::map<std::string_view, std::int64_t> published = {
      {"gpt2-124m", 124'439'808},   {"gpt2-355m", 354'823'168},     {"gpt2-774m", 774'030'080},
      {"gpt2-1.5b", 1'557'611'200}, {"llama-tiny", 13'472'640},     {"llama-160m", 162'417'408},
      {"llama3-8b", 8'030'261'248}, {"llama3-70b", 70'553'706'496}, {"llama3-405b", 405'853'388'800}};
  ASSERT_EQ(preset_names().size(), published.size());
  for (const std::string_view name : preset_names()) {
    EXPECT_EQ(parameter_count(filled(name)), published.at(name)) << name;
  }
}

TEST(ParameterCount, OfAnMlpCountsWeightsAndBiases) {
  Model model;
  model.name = ModelFamily::mlp;
  model.layers = 2;
  model.width = 5;
  model.max_seq_len = 3;
  model.vocab_size = 7;
  EXPECT_EQ(parameter_count(model), (3 * 5 + 5) + (5 * 5 + 5) + 5 * 7);
  EXPECT_EQ(flops_per_token(model, 3), 6.0 * 85);
}

TEST(FlopsPerToken, LeavesOutTablesThatAreOnlyLookedUp) {
  const Model gpt = filled("gpt2-124m");
  EXPECT_EQ(flops_per_token(gpt, 512), 6.0 * (124'439'808 - 1024 * 768) + 12.0 * 12 * 768 * 512);
  const Model llama = filled("llama3-8b");
  EXPECT_EQ(flops_per_token(llama, 8192), 6.0 * (8'030'261'248 - 128256LL * 4096) + 12.0 * 32 * 4096 * 8192);
}

TEST(BlockParameterCounts, AddUpToThoseOfTheModel) {
  for (const std::string_view name : preset_names()) {
    const Model model = filled(name);
    const std::vector<std::int64_t> blocks = block_parameter_counts(model);
    ASSERT_EQ(blocks.size(), static_cast<std::size_t>(model.layers) + 3) << name;
    EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}), parameter_count(model)) << name;
    EXPECT_EQ(blocks.back() == 0, model.tied_embeddings) << name;
  }
}

// Embedding, layers, last norm, head.
TEST(BlockFlops, AddUpToThoseOfTheModel) {
  for (const std::string_view name : preset_names()) {
    const Model model = filled(name);
    const std::vector<double> blocks = block_flops_per_token(model, 1024);
    ASSERT_EQ(blocks.size(), static_cast<std::size_t>(model.layers) + 3) << name;
    EXPECT_EQ(blocks.front(), 0.0);
    EXPECT_EQ(blocks.back(), 6.0 * static_cast<double>(model.vocab_size * model.width)) << name;
    EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), 0.0), flops_per_token(model, 1024)) << name;
  }
}

}  // namespace
}  // namespace lockstep::spec
