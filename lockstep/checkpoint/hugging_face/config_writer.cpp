// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/config.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::ordered_json;

ordered_json gpt(const spec::Model& model) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"n_layer", model.layers},
          {"n_embd", model.width},
          {"n_head", model.heads},
          {"n_inner", model.ffn_width},
          {"n_positions", model.max_seq_len},
          {"n_ctx", model.max_seq_len},
          {"vocab_size", model.vocab_size},
          {"layer_norm_epsilon", model.norm_eps},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", model.dropout},
          {"resid_pdrop", model.dropout},
          {"tie_word_embeddings", true}};
}

ordered_json rope_scaling(const spec::Model& model) {
  if (model.rope_scaling == spec::RopeScaling::none) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", model.rope_factor},
          {"low_freq_factor", model.rope_low_freq_factor},
          {"high_freq_factor", model.rope_high_freq_factor},
          {"original_max_position_embeddings", model.rope_original_seq_len}};
}

ordered_json llama(const spec::Model& model) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_act", "silu"},
          {"num_hidden_layers", model.layers},
          {"hidden_size", model.width},
          {"num_attention_heads", model.heads},
          {"num_key_value_heads", model.kv_heads},
          {"head_dim", model.head_width},
          {"intermediate_size", model.ffn_width},
          {"max_position_embeddings", model.max_seq_len},
          {"vocab_size", model.vocab_size},
          {"rms_norm_eps", model.norm_eps},
          {"rope_theta", model.rope_theta},
          {"rope_scaling", rope_scaling(model)},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", model.tied_embeddings}};
}

// Transformers has no such model; these folders are read by lockstep alone.
ordered_json mlp(const spec::Model& model) {
  return {{"model_type", "lockstep_mlp"},
          {"num_hidden_layers", model.layers},
          {"hidden_size", model.width},
          {"num_inputs", model.max_seq_len},
          {"num_labels", model.vocab_size}};
}

ordered_json model_fields(const spec::Model& model) {
  switch (model.name) {
    case spec::ModelFamily::gpt:
      return gpt(model);
    case spec::ModelFamily::llama:
      return llama(model);
    case spec::ModelFamily::mlp:
      return mlp(model);
  }
  LOCKSTEP_CHECK(false);
  return {};
}

const char* torch_name_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    default:
      return "float32";
  }
}

// Without them, transformers would take the tokens of the models that the two were first made for.
void add_special_tokens(ordered_json& json, const SpecialTokens& special) {
  json["bos_token_id"] = special.begin_of_text ? ordered_json(*special.begin_of_text) : ordered_json(nullptr);
  const std::vector<std::uint32_t>& ends = special.ends_of_text;
  json["eos_token_id"] = ends.size() == 1 ? ordered_json(ends.front()) : ordered_json(ends);
  if (ends.empty()) json["eos_token_id"] = nullptr;
}

}  // namespace

std::string to_special_tokens_json(const SpecialTokens& special) {
  ordered_json json;
  add_special_tokens(json, special);
  return json.dump(2) + "\n";
}

std::string to_config_json(const FolderConfig& config) {
  ordered_json json = model_fields(config.model);
  if (config.dtype) json["torch_dtype"] = torch_name_of(*config.dtype);
  add_special_tokens(json, config.special);
  return json.dump(2) + "\n";
}

std::string to_generation_config_json(const FolderConfig& config) {
  ordered_json json = {{"_from_model_config", true}};
  add_special_tokens(json, config.special);
  return json.dump(2) + "\n";
}

}  // namespace lockstep::checkpoint
