// SPDX-License-Identifier: Apache-2.0
//
// Every parameter has exactly one rule, every rule a parameter, and the divided dimension is what the rule
// says.
#include "lockstep/model/gpt/shard_rules.h"

#include <set>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/model/llama/shard_rules.h"
#include "lockstep/model/mlp/model.h"
#include "lockstep/model/mlp/shard_rules.h"

namespace lockstep::model {
namespace {

// All different, so that no dimension can be taken for another.
constexpr std::int64_t kHeads = 6, kKvHeads = 2, kHeadWidth = 8, kFfn = 80, kVocabulary = 101, kWidth = 36;

std::int64_t expected_size(const ShardRule& rule) {
  switch (rule.shard) {
    case Shard::rows:
    case Shard::columns:
      return rule.parts * kFfn;
    case Shard::vocabulary:
      return kVocabulary;
    case Shard::heads:
    case Shard::head_columns:
      return rule.parts * kHeads * kHeadWidth;
    case Shard::kv_heads:
      return rule.parts * kKvHeads * kHeadWidth;
    case Shard::replicated:
      break;
  }
  return 0;
}

void expect_complete(const std::vector<Model>& models, std::span<const ShardRule> rules) {
  std::set<std::string_view> used;
  for (const Model& model : models) {
    for (const ParameterSpec& parameter : parameters_of(model)) {
      const ShardRule& rule = rule_of(rules, parameter.name);
      used.insert(rule.name);
      if (rule.shard == Shard::replicated) continue;
      const bool by_columns = rule.shard == Shard::columns || rule.shard == Shard::head_columns;
      ASSERT_GT(parameter.shape.size(), by_columns ? 1U : 0U) << parameter.name;
      EXPECT_EQ(parameter.shape[by_columns ? 1 : 0], expected_size(rule)) << parameter.name;
    }
  }
  EXPECT_EQ(used.size(), rules.size()) << "a rule is nobody's";
}

template <typename... Models>
std::vector<Model> list_of(Models&&... models) {
  std::vector<Model> all;
  (all.push_back(std::forward<Models>(models)), ...);
  return all;
}

TEST(ShardRules, OfAGptAreComplete) {
  expect_complete(list_of(gpt::make({.layers = 11,
                                     .width = kHeads * kHeadWidth,
                                     .heads = kHeads,
                                     .ffn_width = kFfn,
                                     .vocabulary = kVocabulary,
                                     .positions = 24})),
                  gpt::shard_rules());
}

TEST(ShardRules, OfALlamaAreComplete) {
  llama::Config config = {.layers = 11,
                          .width = kWidth,
                          .heads = kHeads,
                          .kv_heads = kKvHeads,
                          .head_width = kHeadWidth,
                          .ffn_width = kFfn,
                          .vocabulary = kVocabulary,
                          .positions = 24,
                          .tied = true};
  Model tied = llama::make(config);
  config.tied = false;
  expect_complete(list_of(std::move(tied), llama::make(config)), llama::shard_rules());
}

TEST(ShardRules, OfAnMlpAreComplete) {
  expect_complete(list_of(mlp::make({.layers = 3, .classes = kVocabulary})), mlp::shard_rules());
}

TEST(ShardRules, AParameterWithoutRuleOrWithTwoIsOurMistake) {
  const ShardRule rules[] = {{"a.*.b"}, {"a.1.b"}, {"c"}};
  EXPECT_EQ(rule_of(rules, "a.20.b").name, "a.*.b");
  EXPECT_THROW(rule_of(rules, "a.1.b"), InternalError);
  for (const char* name : {"a..b", "a.x.b", "a.1.bb", "cc", ""}) {
    EXPECT_THROW(rule_of(rules, name), InternalError) << name;
  }
}

}  // namespace
}  // namespace lockstep::model
