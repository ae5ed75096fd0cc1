// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/config.h"

#include "tests/checkpoint/models.h"
#include "tests/support/error_of.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using testing::gpt_model;
using ::testing::HasSubstr;
using testing::llama_model;
using testing::scaled_llama_model;

TEST(HuggingFaceConfig, WhatIsWrittenIsRead) {
  for (const spec::Model& model : {llama_model(), scaled_llama_model(), gpt_model()}) {
    for (const SpecialTokens& special : {SpecialTokens{.begin_of_text = 6, .ends_of_text = {7}},
                                         SpecialTokens{.begin_of_text = 1, .ends_of_text = {9, 2, 8}},
                                         SpecialTokens{.ends_of_text = {7}}, SpecialTokens{}}) {
      const FolderConfig config = {.model = model, .dtype = DType::bf16, .special = special};
      const FolderConfig found = read_config(to_config_json(config), "config.json");
      EXPECT_EQ(found.model, model);
      EXPECT_EQ(found.dtype, DType::bf16);
      EXPECT_EQ(found.special, special);
    }
  }
}

// The one of LLaMA 3 begins a document with another token than those that end it.
TEST(HuggingFaceConfig, SpecialTokensAreWrittenAsTransformersDoes) {
  FolderConfig config = {.model = llama_model(), .special = {.begin_of_text = 10, .ends_of_text = {11, 13}}};
  for (const auto& written : {to_config_json(config), to_generation_config_json(config)}) {
    const auto json = nlohmann::json::parse(written);
    EXPECT_EQ(json["bos_token_id"], 10);
    EXPECT_EQ(json["eos_token_id"], nlohmann::json({11, 13}));
  }
  config.special = {.ends_of_text = {11}};
  const auto json = nlohmann::json::parse(to_config_json(config));
  EXPECT_TRUE(json["bos_token_id"].is_null());
  EXPECT_EQ(json["eos_token_id"], 11);
}

TEST(HuggingFaceConfig, WhatIsLeftOutIsAsInTransformers) {
  const auto read_without = [](const spec::Model& model, const std::vector<const char*>& fields) {
    nlohmann::json json = nlohmann::json::parse(to_config_json({.model = model}));
    for (const char* field : fields) json.erase(field);
    return read_config(json.dump(), "f");
  };
  spec::Model model = llama_model();
  const FolderConfig llama = read_without(
      model, {"rms_norm_eps", "rope_theta", "num_key_value_heads", "head_dim", "tie_word_embeddings",
              "hidden_act", "rope_scaling", "attention_bias", "mlp_bias", "bos_token_id", "eos_token_id"});
  EXPECT_EQ(llama.model.norm_eps, 1e-6);
  EXPECT_EQ(llama.model.rope_theta, 10000.0);
  EXPECT_EQ(llama.model.kv_heads, 4);
  EXPECT_EQ(llama.model.head_width, 12);
  EXPECT_FALSE(llama.model.tied_embeddings);
  EXPECT_EQ(llama.special, (SpecialTokens{.begin_of_text = 1, .ends_of_text = {2}}));
  model = gpt_model();
  model.vocab_size = 50257;
  const FolderConfig gpt = read_without(model, {"layer_norm_epsilon", "n_inner", "activation_function",
                                                "tie_word_embeddings", "bos_token_id", "eos_token_id"});
  EXPECT_EQ(gpt.model.norm_eps, 1e-5);
  EXPECT_EQ(gpt.model.ffn_width, 4 * 48);
  EXPECT_TRUE(gpt.model.tied_embeddings);
  EXPECT_EQ(gpt.special, (SpecialTokens{.begin_of_text = 50256, .ends_of_text = {50256}}));
}

// The configuration of the public gpt2, as far as it describes the model.
TEST(HuggingFaceConfig, ReadsTheOneOfGpt2) {
  const FolderConfig found = read_config(R"({"activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"], "eos_token_id": 50256, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "vocab_size": 50257})",
                                         "config.json");
  EXPECT_EQ(found.model.name, spec::ModelFamily::gpt);
  EXPECT_EQ(found.model.ffn_width, 3072);
  EXPECT_EQ(found.model.max_seq_len, 1024);
  EXPECT_EQ(found.dtype, std::nullopt);
}

std::string refusal_of(const nlohmann::json& changes, const spec::Model& model = llama_model()) {
  nlohmann::json json = nlohmann::json::parse(to_config_json({.model = model}));
  json.merge_patch(changes);
  try {
    read_config(json.dump(), "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HuggingFaceConfig, RefusesWhatItIsNot) {
  EXPECT_EQ(refusal_of(nlohmann::json::object()), "accepted");
  EXPECT_THAT(refusal_of({{"model_type", "bert"}}), HasSubstr("f: model_type is 'bert'"));
  EXPECT_THAT(refusal_of({{"hidden_size", -1}}), HasSubstr("f: hidden_size must be"));
  EXPECT_THAT(refusal_of({{"hidden_size", UINT64_MAX}}), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refusal_of({{"hidden_size", 1e9}}), HasSubstr("f: hidden_size"));
  EXPECT_THAT(refusal_of({{"hidden_size", 1 << 30}}), HasSubstr("f: hidden_size must be"));
  EXPECT_THAT(refusal_of({{"hidden_size", "many"}}), HasSubstr("wrong kind"));
  EXPECT_THAT(refusal_of({{"num_hidden_layers", nullptr}}), HasSubstr("num_hidden_layers is missing"));
  EXPECT_THAT(refusal_of({{"num_key_value_heads", 3}}), HasSubstr("does not divide"));
  EXPECT_THAT(refusal_of({{"attention_bias", true}}), HasSubstr("attention_bias is true"));
  EXPECT_THAT(refusal_of({{"rope_parameters", {{"rope_type", "default"}, {"factor", 8.0}}}}),
              HasSubstr("rope_parameters is {"));
  EXPECT_THAT(refusal_of({{"rope_parameters", 1}}), HasSubstr("rope_parameters is 1"));
  EXPECT_THAT(refusal_of({{"rope_parameters", {{"rope_theta", "high"}}}}), HasSubstr("wrong kind"));
  EXPECT_THAT(refusal_of({{"hidden_act", "gelu"}}), HasSubstr("hidden_act is gelu"));
  EXPECT_THAT(refusal_of({{"activation_function", "relu"}}, gpt_model()), HasSubstr("relu"));
  EXPECT_EQ(refusal_of({{"scale_attn_weights", false}}, gpt_model()),
            "f: scale_attn_weights is false, which lockstep's models do not have");
  EXPECT_EQ(refusal_of({{"scale_attn_weights", true}, {"reorder_and_upcast_attn", true}}, gpt_model()),
            "accepted")
      << "the second one says how exactly the same is computed";
  EXPECT_THAT(refusal_of({{"scale_attn_by_inverse_layer_idx", true}}, gpt_model()), HasSubstr("is true"));
  for (const char* text : {"", "{", "[]", "1"}) EXPECT_THROW(read_config(text, "f"), DataError) << text;
}

// The configuration of the public LLaMA 3.2 1B, as far as it describes the model.
TEST(HuggingFaceConfig, ReadsTheOneOfLlama32) {
  const FolderConfig found = read_config(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0,
    "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
    "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "vocab_size": 128256})",
                                         "config.json");
  EXPECT_EQ(found.model.rope_scaling, spec::RopeScaling::llama3);
  EXPECT_EQ(found.model.rope_factor, 32.0);
  EXPECT_EQ(found.model.rope_low_freq_factor, 1.0);
  EXPECT_EQ(found.model.rope_high_freq_factor, 4.0);
  EXPECT_EQ(found.model.rope_original_seq_len, 8192);
  EXPECT_EQ(found.model.max_seq_len, 131072);
  EXPECT_EQ(found.special, (SpecialTokens{.begin_of_text = 128000, .ends_of_text = {128001}}));
}

TEST(HuggingFaceConfig, WritesRopeScalingAsTransformersDoes) {
  const auto scaled = nlohmann::json::parse(to_config_json({.model = scaled_llama_model()}));
  const nlohmann::json expected = {{"rope_type", "llama3"},
                                   {"factor", 32.0},
                                   {"low_freq_factor", 1.5},
                                   {"high_freq_factor", 5.0},
                                   {"original_max_position_embeddings", 16}};
  EXPECT_EQ(scaled["rope_scaling"], expected);
  EXPECT_TRUE(nlohmann::json::parse(to_config_json({.model = llama_model()}))["rope_scaling"].is_null());
}

TEST(HuggingFaceConfig, RefusesOtherRopeScalings) {
  const auto with = [](const nlohmann::json& changes) {
    return refusal_of({{"rope_scaling", changes}}, scaled_llama_model());
  };
  EXPECT_EQ(with({{"factor", 8}}), "accepted");
  EXPECT_EQ(with({{"rope_type", "yarn"}}),
            "f: rope_scaling is of type \"yarn\": lockstep reads default and llama3");
  EXPECT_THAT(with({{"rope_type", nullptr}, {"type", "linear"}}), HasSubstr("of type \"linear\""));
  EXPECT_THAT(with({{"rope_type", 3}}), HasSubstr("of type 3"));
  EXPECT_THAT(with({{"rope_type", "default"}}), HasSubstr("rope_scaling is {"));
  EXPECT_THAT(with({{"factor", nullptr}}), HasSubstr("but type llama3 has a factor"));
  EXPECT_THAT(with({{"beta_fast", 32}}), HasSubstr("rope_scaling is {"));
  EXPECT_THAT(with({{"factor", 0.5}}), HasSubstr("f: factor of rope_scaling must be"));
  EXPECT_THAT(with({{"factor", "8"}}), HasSubstr("wrong kind"));
  EXPECT_THAT(with({{"low_freq_factor", 0}}), HasSubstr("low_freq_factor of rope_scaling must be"));
  EXPECT_THAT(with({{"low_freq_factor", 5}}), HasSubstr("must be below model.rope_high_freq_factor = 5"));
  EXPECT_THAT(with({{"original_max_position_embeddings", 0}}), HasSubstr("must be"));
  EXPECT_THAT(with({{"original_max_position_embeddings", -1}}), HasSubstr("must be"));
}

TEST(HuggingFaceConfig, ReadsNewerFolders) {
  nlohmann::json json = nlohmann::json::parse(to_config_json({.model = llama_model()}));
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  json["eos_token_id"] = {7, 8};
  const FolderConfig found = read_config(json.dump(), "f");
  EXPECT_EQ(found.model.rope_theta, 500000.0);
  EXPECT_THAT(found.special.ends_of_text, ElementsAre(7U, 8U));
  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000.0},
                             {"factor", 8.0},           {"low_freq_factor", 1.0},
                             {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8192}};
  EXPECT_EQ(read_config(json.dump(), "f").model.rope_scaling, spec::RopeScaling::llama3);
}

// Text that would exhaust the stack of whoever prints it.
TEST(HuggingFaceConfig, RefusesADeepNest) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::string json = R"({"model_type": "gpt2", "n_layer": )" + deep + "}";
  EXPECT_THAT(error_of<DataError>([&] { read_config(json, "f"); }), HasSubstr("f: it is nested deeper"));
}

TEST(HuggingFaceConfig, ATokenBeyondTheVocabularyIsNone) {
  for (const std::uint32_t token : {300U, ~0U}) {
    const FolderConfig config = {.model = llama_model(),
                                 .special = {.begin_of_text = token, .ends_of_text = {token, 7}}};
    EXPECT_EQ(read_config(to_config_json(config), "f").special, (SpecialTokens{.ends_of_text = {7}}));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
