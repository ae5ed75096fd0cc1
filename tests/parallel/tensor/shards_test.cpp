// SPDX-License-Identifier: Apache-2.0
//
// What the lanes have of a parameter is the whole of it, each element once or, where lanes share it, as often
// as they are.
#include "lockstep/parallel/tensor/shards.h"

#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/gpt/shard_rules.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/llama/shard_rules.h"

namespace lockstep::parallel {
namespace {

using model::ParameterSpec;

struct Case {
  model::Model model;
  std::span<const model::ShardRule> rules;
  DividedSizes sizes;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back(
      {model::gpt::make(
           {.layers = 2, .width = 48, .heads = 8, .ffn_width = 72, .vocabulary = 1003, .positions = 33}),
       model::gpt::shard_rules(),
       {.heads = 8, .kv_heads = 8, .ffn_width = 72}});
  for (std::int64_t kv_heads : {8, 4, 2, 1}) {
    all.push_back({model::llama::make({.layers = 2,
                                       .width = 40,
                                       .heads = 8,
                                       .kv_heads = kv_heads,
                                       .head_width = 6,
                                       .ffn_width = 72,
                                       .vocabulary = 1003}),
                   model::llama::shard_rules(),
                   {.heads = 8, .kv_heads = kv_heads, .ffn_width = 72}});
  }
  return all;
}

void for_each_parameter(
    int lanes, const std::function<void(const ParameterSpec&, const std::vector<LaneShard>&)>& body) {
  for (const Case& one : cases()) {
    for (const ParameterSpec& spec : model::parameters_of(one.model)) {
      SCOPED_TRACE(spec.name + ", " + std::to_string(lanes) + " lanes, " +
                   std::to_string(one.sizes.kv_heads) + " kv heads");
      std::vector<LaneShard> shards;
      for (int lane = 0; lane < lanes; ++lane) {
        shards.push_back(shard_of(spec, model::rule_of(one.rules, spec.name), one.sizes, lanes, lane));
      }
      body(spec, shards);
    }
  }
}

TEST(Shards, MakeUpTheWholeParameter) {
  for (int lanes : {1, 2, 4, 8}) {
    for_each_parameter(lanes, [](const ParameterSpec& spec, const std::vector<LaneShard>& shards) {
      const at::Tensor whole = at::arange(1, spec.elements() + 1, at::kFloat).view(spec.shape);
      const at::Tensor again = at::zeros(spec.shape, at::kFloat);
      const at::Tensor times = at::zeros(spec.shape, at::kFloat);
      double shared = 0;
      for (const LaneShard& shard : shards) {
        EXPECT_EQ(shard.shape, shards[0].shape);
        EXPECT_EQ(shard.sharing.first % shard.sharing.count, 0);
        const at::Tensor part = at::full(shard.shape, -1.0, at::kFloat);
        take_part(shard, whole, part);
        EXPECT_EQ(part.gt(0).sum().item<std::int64_t>(), shard.elements());
        EXPECT_EQ(part.lt(0).sum().item<std::int64_t>(), 0) << "padding is zero";
        const auto elements = static_cast<std::size_t>(part.numel());
        // In two pieces, cut anywhere.
        const std::size_t cut = elements / 3 + 1;
        const at::Tensor flat = part.view({-1});
        put_part(shard, {0, cut}, flat.slice(0, 0, static_cast<std::int64_t>(cut)), again);
        put_part(shard, {cut, elements}, flat.slice(0, static_cast<std::int64_t>(cut)), again);
        const at::Tensor mine = at::zeros(spec.shape, at::kFloat);
        put_part(shard, {0, elements}, at::full(shard.shape, 1.0 / shard.sharing.count, at::kFloat), mine);
        times.add_(mine);
        shared += shard.sharing.count;
      }
      EXPECT_TRUE(again.equal(whole));
      EXPECT_TRUE(times.eq(1).all().item<bool>()) << "each element once";
      EXPECT_GE(shared, static_cast<double>(shards.size()));
    });
  }
}

TEST(Shards, OfOneLaneAreTheParameters) {
  for_each_parameter(1, [](const ParameterSpec& spec, const std::vector<LaneShard>& shards) {
    EXPECT_EQ(shards[0].shape, spec.shape);
    EXPECT_EQ(shards[0].elements(), spec.elements());
  });
}

TEST(Shards, LanesThatShareHaveTheSameElements) {
  for_each_parameter(8, [](const ParameterSpec&, const std::vector<LaneShard>& shards) {
    for (const LaneShard& shard : shards) {
      for (int lane = shard.sharing.first; lane < shard.sharing.end(); ++lane) {
        const LaneShard& other = shards[static_cast<std::size_t>(lane)];
        EXPECT_EQ(other.sharing, shard.sharing);
        EXPECT_EQ(other.first, shard.first);
      }
    }
  });
}

TEST(Shards, HaveTheFirstValuesOfTheWhole) {
  for_each_parameter(4, [](const ParameterSpec& spec, const std::vector<LaneShard>& shards) {
    const at::Tensor whole = at::empty(spec.shape, at::kFloat);
    model::initial_values(spec, 3, 0, {whole.data_ptr<float>(), static_cast<std::size_t>(whole.numel())});
    for (const LaneShard& shard : shards) {
      const at::Tensor expected = at::empty(shard.shape, at::kFloat);
      take_part(shard, whole, expected);
      const at::Tensor found = at::empty(shard.shape, at::kFloat);
      const std::span<float> values(found.data_ptr<float>(), static_cast<std::size_t>(found.numel()));
      const std::size_t cut = values.size() / 3;
      initial_part(spec, shard, 3, 0, values.first(cut));
      initial_part(spec, shard, 3, cut, values.subspan(cut));
      EXPECT_TRUE(found.equal(expected));
    }
  });
}

std::string refusal(const DividedSizes& sizes, int lanes, int workers = 1) {
  try {
    check_tensor_lanes(sizes, lanes, workers);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Shards, WhatCannotBeDividedIsRefusedWithWhatWouldFit) {
  EXPECT_EQ(refusal({8, 4, 64}, 4, 2), "accepted");
  EXPECT_EQ(refusal({8, 2, 64}, 4, 4), "accepted");
  EXPECT_EQ(refusal({}, 1), "accepted");
  EXPECT_EQ(refusal({}, 2),
            "parallelism.tensor_lanes = 2: the layers of this model cannot be divided; take "
            "parallelism.tensor_lanes = 1");
  EXPECT_EQ(refusal({}, 2, 2),
            "parallelism.tensor_lanes = 2: the layers of this model cannot be divided; take "
            "parallelism.tensor = 1");
  EXPECT_EQ(refusal({8, 2, 64}, 3), "parallelism.tensor_lanes = 3 must be a power of two (1, 2, 4, ...)");
  EXPECT_EQ(refusal({8, 2, 64}, 0), "parallelism.tensor_lanes = 0 must be a power of two (1, 2, 4, ...)");
  EXPECT_EQ(refusal({8, 2, 64}, 4, 3), "parallelism.tensor = 3 must be a power of two: take 2 or 4");
  EXPECT_EQ(refusal({8, 2, 64}, 2, 4),
            "parallelism.tensor = 4 does not divide parallelism.tensor_lanes = 2; take 1 or 2");
  EXPECT_EQ(
      refusal({6, 2, 64}, 4),
      "model.heads = 6 cannot be divided among parallelism.tensor_lanes = 4; take model.heads = 4 or 8, "
      "or parallelism.tensor_lanes = 2");
  EXPECT_EQ(refusal({3, 3, 64}, 4),
            "model.heads = 3 cannot be divided among parallelism.tensor_lanes = 4; take model.heads = 4, or "
            "parallelism.tensor_lanes = 1");
  EXPECT_EQ(refusal({8, 2, 70}, 4),
            "model.ffn_width = 70 cannot be divided among parallelism.tensor_lanes = 4; take model.ffn_width "
            "= 68 or 72, or parallelism.tensor_lanes = 2");
  EXPECT_EQ(refusal({12, 3, 64}, 4),
            "model.kv_heads = 3 and parallelism.tensor_lanes = 4: one must divide the other; take "
            "model.kv_heads = 1 or 2 or 4 or 12");
}

}  // namespace
}  // namespace lockstep::parallel
