// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/checkpoint/hugging_face/state.h"
#include "lockstep/data/tokenizer/tokenizer.h"

#include "tests/checkpoint/tensors.h"
#include "tests/data/tokens.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::tensor_of;
using ::testing::UnorderedElementsAre;

spec::Model llama_model() {
  return {.name = spec::ModelFamily::llama,
          .layers = 3,
          .width = 48,
          .heads = 4,
          .kv_heads = 2,
          .head_width = 16,
          .ffn_width = 100,
          .vocab_size = 300,
          .max_seq_len = 64,
          .rope_theta = 50000,
          .norm_eps = 1e-6,
          .tied_embeddings = false};
}

spec::Model scaled_llama_model() {
  spec::Model model = llama_model();
  model.rope_scaling = spec::RopeScaling::llama3;
  model.rope_factor = 32;
  model.rope_low_freq_factor = 1.5;
  model.rope_high_freq_factor = 5;
  model.rope_original_seq_len = 16;
  return model;
}

spec::Model gpt_model() {
  return {.name = spec::ModelFamily::gpt,
          .layers = 2,
          .width = 48,
          .heads = 3,
          .kv_heads = 3,
          .head_width = 16,
          .ffn_width = 96,
          .vocab_size = 300,
          .max_seq_len = 64};
}

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
  EXPECT_THAT(refusal_of({{"hidden_size", -1}}), HasSubstr("f: hidden_size is -1"));
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
  EXPECT_THAT(with({{"original_max_position_embeddings", -1}}), HasSubstr("wrong kind"));
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

class SavedFolder : public ::testing::Test {
 protected:
  std::vector<OutgoingTensor> tensors() const {
    return {tensor_of("a", DType::uint8, {4}, "aaaa"), tensor_of("b", DType::uint8, {2}, "bb"),
            tensor_of("c", DType::uint8, {9}, "ccccccccc"), tensor_of("d", DType::uint8, {1}, "d")};
  }
  void save(std::uint64_t max_shard_bytes, const FolderTokenizer& tokenizer = {}) const {
    const FolderConfig config = {
        .model = llama_model(), .dtype = DType::fp32, .special = tokenizer.special_tokens()};
    save_folder(path_, config, tensors(), tokenizer, max_shard_bytes);
  }
  std::string content(const char* name) const {
    const ModelFolder folder(path_);
    const auto [file, tensor] = folder.find(name);
    return tensor == nullptr ? "none" : testing::text_of(file->bytes_of(*tensor));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path("");
};

TEST_F(SavedFolder, ASmallModelIsOneFile) {
  save(100, {.tokenizer = data::load_tokenizer("bytes")});
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors",
                                   "tokenizer.json", "tokenizer_config.json"));
  EXPECT_EQ(SafetensorsFile(folder_.path("model.safetensors")).header().metadata.at("format"), "pt");
  EXPECT_EQ(content("b"), "bb");
  EXPECT_EQ(content("x"), "none");
  EXPECT_EQ(data::load_tokenizer(path_)->vocab_size(), 257U);
  const auto settings = nlohmann::json::parse(folder_.read("tokenizer_config.json"));
  EXPECT_EQ(settings["eos_token"], "<|endoftext|>");
  EXPECT_EQ(settings["bos_token"], "<|endoftext|>");
}

class Companions : public SavedFolder {
 protected:
  // As a folder of LLaMA 3 has it, with tokens of bytes.
  void write_theirs() {
    theirs_.write("tokenizer.json", data::load_tokenizer("bytes")->serialized());
    theirs_.write("config.json",
                  R"({"model_type": "qwen2", "bos_token_id": 10, "eos_token_id": [11, 299, 300]})");
    for (const auto& [name, text] : files_) theirs_.write(name, text);
  }
  bool take(FolderTokenizer& into) const { return take_companions(theirs_.path(""), 300, into); }

  TemporaryFolder theirs_;
  std::map<std::string, std::string> files_ = {
      {"tokenizer_config.json",
       R"({"bos_token": {"content": "a"}, "eos_token": "<|endoftext|>", "chat_template": "{{ x }}"})"},
      {"special_tokens_map.json", R"({"bos_token": "a"})"},
      {"generation_config.json", R"({"temperature": 0.6, "eos_token_id": [11, 299]})"},
      {"chat_template.jinja", "{{ y }}"}};
};

TEST_F(Companions, StayAsTheyAre) {
  write_theirs();
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer(theirs_.path(""))};
  ASSERT_TRUE(take(tokenizer));
  for (int round = 0; round < 2; ++round) {
    save(100, tokenizer);
    for (const auto& [name, text] : files_) EXPECT_EQ(folder_.read(name), text) << name;
    EXPECT_EQ(folder_.read("tokenizer.json"), theirs_.read("tokenizer.json"));
    EXPECT_EQ(ModelFolder(path_).config().special,
              (SpecialTokens{.begin_of_text = 10, .ends_of_text = {11, 299}}));
  }
  FolderTokenizer again = {.tokenizer = data::load_tokenizer(path_)};
  ASSERT_TRUE(take_companions(path_, 300, again));
  EXPECT_EQ(again.companions, files_);
  EXPECT_EQ(again.special, tokenizer.special);
}

TEST_F(Companions, OfAnotherTokenizerAreLeft) {
  write_theirs();
  auto other = nlohmann::json::parse(theirs_.read("tokenizer.json"));
  other["added_tokens"].push_back({{"id", 257}, {"content", "<|more|>"}, {"special", true}});
  theirs_.write("tokenizer.json", other.dump());
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_EQ(tokenizer.companions.size(), 0U);
  EXPECT_EQ(tokenizer.special_tokens(), (SpecialTokens{.begin_of_text = 256, .ends_of_text = {256}}));
}

TEST_F(Companions, AreLeftInAFolderThatDoesNotShowItsTokenizer) {
  write_theirs();
  std::filesystem::remove(theirs_.path("tokenizer.json"));
  theirs_.write("tokenizer.model", "\xFF");
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_EQ(tokenizer.companions.size(), 0U);
  EXPECT_EQ(tokenizer.special, std::nullopt);
}

TEST_F(Companions, DoNotNameTokensBeyondTheVocabulary) {
  write_theirs();
  for (const char* tokens :
       {R"("eos_token_id": 300)", R"("eos_token_id": [11, 300])", R"("pad_token_id": 4294967296)"}) {
    theirs_.write("generation_config.json", std::string("{") + tokens + "}");
    FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
    EXPECT_TRUE(take(tokenizer));
    EXPECT_FALSE(tokenizer.companions.contains("generation_config.json")) << tokens;
  }
}

TEST_F(Companions, AreKeptAsTheyAre) {
  write_theirs();
  files_["tokenizer.model"] = std::string("\xFF\0", 2);
  theirs_.write("tokenizer.model", files_["tokenizer.model"]);
  const std::string kept = folder_.path("kept");
  FolderTokenizer before = {.tokenizer = data::load_tokenizer("bytes")};
  ASSERT_TRUE(take(before));
  EXPECT_FALSE(has_kept_companions(kept));
  keep_companions(kept, before);
  EXPECT_TRUE(has_kept_companions(kept));
  FolderTokenizer after = {.tokenizer = data::load_tokenizer("bytes")};
  ASSERT_TRUE(take_companions(kept, 300, after));
  EXPECT_EQ(after.companions, files_);
  EXPECT_EQ(after.special, before.special);
}

TEST_F(Companions, SomebodyElsesFilesCanBeIgnored) {
  write_theirs();
  for (const char* text : {"{", "[1, 2]", "{}"}) {
    theirs_.write("config.json", text);
    FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
    EXPECT_TRUE(take_companions(theirs_.path(""), 300, tokenizer, WhenCorrupt::ignore));
    EXPECT_EQ(tokenizer.companions, files_);
    EXPECT_EQ(tokenizer.special, (SpecialTokens{.begin_of_text = 'a', .ends_of_text = {256}})) << text;
  }
}

TEST_F(Companions, WithoutATokenizerOnlyWhatSpeaksOfTheModelIsTaken) {
  write_theirs();
  FolderTokenizer none;
  EXPECT_TRUE(take(none));
  EXPECT_EQ(none.companions.size(), 1U);
  EXPECT_EQ(none.companions["generation_config.json"], files_["generation_config.json"]);
  EXPECT_EQ(none.special, (SpecialTokens{.begin_of_text = 10, .ends_of_text = {11, 299}}));
}

TEST_F(Companions, NameTheTokensWhereThereIsNoModel) {
  write_theirs();
  std::filesystem::remove(theirs_.path("config.json"));
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_TRUE(take(tokenizer));
  EXPECT_EQ(tokenizer.special, (SpecialTokens{.begin_of_text = 'a', .ends_of_text = {256}}));
}

TEST_F(Companions, AFolderWithoutAnyGivesNothing) {
  FolderTokenizer tokenizer = {.tokenizer = data::load_tokenizer("bytes")};
  EXPECT_FALSE(take(tokenizer));
  EXPECT_FALSE(take_companions(theirs_.path("none"), 300, tokenizer));
  write_theirs();
  theirs_.write("config.json", "{");
  EXPECT_THAT(error_of<DataError>([&] { take(tokenizer); }), HasSubstr("config.json"));
}

TEST_F(SavedFolder, ALargeOneIsSeveralWithAnIndex) {
  save(6);
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors.index.json",
                                   "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                   "model-00003-of-00003.safetensors"));
  const auto index = nlohmann::json::parse(folder_.read("model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 16);
  EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00003.safetensors");
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(content(name)[0], *name);
  EXPECT_THAT(ModelFolder(path_).names(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(SavedFolder, WeightsThatWereThereBeforeAreReplaced) {
  for (const std::uint64_t limit : {6, 100, 4, 6}) {
    save(limit);
    EXPECT_EQ(ModelFolder(path_).names().size(), 4U) << limit;
  }
  EXPECT_EQ(folder_.names().size(), 6U);
}

TEST_F(SavedFolder, IsReplacedAsAWhole) {
  save(6);
  folder_.write("model-00007-of-00009.safetensors", "of another model");
  const std::string partial = std::filesystem::path(path_).parent_path().string() + ".partial";
  std::filesystem::create_directories(partial);
  std::ofstream(partial + "/model.safetensors.left_by_a_crash") << "x";
  save(100);
  EXPECT_THAT(folder_.names(),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(SavedFolder, WhatIsNoneIsNeverReplaced) {
  const std::string path = std::filesystem::path(path_).parent_path().string();
  folder_.write("notes.txt", "x");
  EXPECT_THAT(test::error_of<UsageError>([&] { save(100); }), HasSubstr("holds notes.txt"));
  EXPECT_THAT(folder_.names(), ElementsAre("notes.txt"));
  std::filesystem::remove(folder_.path("notes.txt"));
  std::filesystem::create_directories(folder_.path("checkpoints"));
  EXPECT_THROW(save(100), UsageError);
  std::filesystem::remove(folder_.path("checkpoints"));
  std::filesystem::create_directories(path + ".partial/mine");
  EXPECT_THROW(save(100), UsageError);
  std::filesystem::remove_all(path + ".partial");
  path_ = folder_.path("file");
  folder_.write("file", "x");
  EXPECT_THAT(test::error_of<UsageError>([&] { save(100); }), HasSubstr("is a file"));
  EXPECT_EQ(folder_.read("file"), "x");
}

TEST_F(SavedFolder, StaysWhenTheNewOneCannotBeWritten) {
  save(100);
  std::vector<OutgoingTensor> broken = tensors();
  broken.back().fill = [](Bytes) { throw UsageError("no space left"); };
  EXPECT_THROW(save_folder(path_, {.model = gpt_model()}, std::move(broken), {}), UsageError);
  EXPECT_EQ(content("c"), "ccccccccc");
  EXPECT_EQ(ModelFolder(path_).config().model.name, spec::ModelFamily::llama);
}

TEST_F(SavedFolder, AnIndexThatLeadsElsewhereIsRefused) {
  save(6);
  for (const char* map : {R"({})", R"({"a":1})", R"({"a":"../x.safetensors"})", R"({"a":"/etc/passwd"})",
                          R"({"a":"..\u0000.safetensors"})", R"({"a":[[]]})", "1"}) {
    folder_.write("model.safetensors.index.json", R"({"weight_map":)" + std::string(map) + "}");
    EXPECT_THROW(ModelFolder{path_}, DataError) << map;
  }
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"a":"missing.safetensors"}})");
  EXPECT_THROW(ModelFolder{path_}, UsageError);
}

TEST_F(SavedFolder, AFolderThatIsNoneIsTheUsersMistake) {
  EXPECT_THAT(error_of<UsageError>([&] { ModelFolder{path_}; }), HasSubstr("there is no config.json"));
}

class State : public ::testing::Test {
 protected:
  State() {
    std::iota(plain_.begin(), plain_.end(), 1.0F);
    std::iota(turned_.begin(), turned_.end(), -2.0F);
  }
  std::vector<StateTensor> state() {
    return {
        {.name = "x.plain", .other_name = "plain", .shape = {4}, .values = plain_},
        {.name = "x.turned", .other_name = "turned", .shape = {2, 3}, .transposed = true, .values = turned_}};
  }
  void save(DType dtype, const std::string& prefix = "x.") {
    std::vector<OutgoingTensor> tensors;
    for (StateTensor& tensor : saved_ = state()) {
      tensor.name.replace(0, 2, prefix);
      tensors.push_back(outgoing(tensor, dtype));
    }
    save_folder(path_, {.model = llama_model()}, std::move(tensors), {});
  }
  void read(std::span<const StateTensor> tensors) {
    read_state(ModelFolder(path_), tensors, [](std::string_view name) { return name == "mask"; });
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.path("");
  std::vector<float> plain_ = std::vector<float>(4);
  std::vector<float> turned_ = std::vector<float>(6);
  std::vector<StateTensor> saved_;
};

TEST_F(State, GoesThereAndBackInEveryDtypeAndUnderBothNames) {
  const auto plain = plain_, turned = turned_;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const char* prefix : {"x.", ""}) {
      save(dtype, prefix);
      plain_.assign(4, 0);
      turned_.assign(6, 0);
      read(state());
      EXPECT_EQ(plain_, plain);
      EXPECT_EQ(turned_, turned);
    }
  }
}

TEST_F(State, TheFileHasTheTransposedMatrix) {
  save(DType::fp32);
  const ModelFolder folder(path_);
  const auto [file, tensor] = folder.find("x.turned");
  EXPECT_THAT(tensor->shape, ElementsAre(3, 2));
  std::vector<float> values(6);
  std::memcpy(values.data(), file->bytes_of(*tensor).data(), 24);
  EXPECT_THAT(values, ElementsAre(-2, 1, -1, 2, 0, 3));
}

TEST_F(State, NamesTheFirstTensorThatDoesNotFit) {
  save(DType::fp32);
  std::vector<StateTensor> other = state();
  other[1].shape = {3, 2};
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }),
              HasSubstr("tensor 'x.turned' has the shape [3, 2], but the model needs [2, 3]"));
  other = state();
  other.push_back({.name = "more", .shape = {1}, .values = plain_});
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }), HasSubstr("tensor 'more' is missing"));
  other = state();
  other.pop_back();
  EXPECT_THAT(error_of<UsageError>([&] { read(other); }),
              HasSubstr("tensor 'x.turned' is not a parameter of the model"));
  save_folder(path_, {.model = llama_model()},
              {tensor_of("x.plain", DType::int32, {4}, std::string(16, 'x'))}, {});
  EXPECT_THAT(error_of<UsageError>([&] { read(state()); }), HasSubstr("'x.plain' is of type I32"));
}

// Whoever reads what is no longer there is ended by the kernel.
TEST_F(State, AFileThatWasCutOffSinceItWasOpenedIsRefused) {
  save(DType::fp32);
  const ModelFolder folder(path_);
  std::filesystem::resize_file(folder_.path("model.safetensors"), 8);
  const std::vector<StateTensor> mine = state();
  EXPECT_THAT(error_of<DataError>([&] { read_state(folder, mine, [](std::string_view) { return true; }); }),
              HasSubstr("model.safetensors at byte 8: the file ends here since it was opened"));
}

TEST_F(State, WhatMayBeIgnoredIs) {
  std::vector<OutgoingTensor> tensors = {tensor_of("mask", DType::uint8, {1}, "m")};
  const std::vector<StateTensor> mine = state();
  for (const StateTensor& tensor : mine) tensors.push_back(outgoing(tensor, DType::fp32));
  save_folder(path_, {.model = llama_model()}, std::move(tensors), {});
  EXPECT_NO_THROW(read(mine));
}

}  // namespace
}  // namespace lockstep::checkpoint
