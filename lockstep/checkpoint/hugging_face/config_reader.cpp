// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/config.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"
#include "lockstep/spec/check.h"
#include "lockstep/spec/key.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;

// What the rotary embedding is described by, and our keys for it.
constexpr std::array<std::pair<std::string_view, const char*>, 5> kRotation = {
    {{"rope_theta", "rope_theta"},
     {"factor", "rope_factor"},
     {"low_freq_factor", "rope_low_freq_factor"},
     {"high_freq_factor", "rope_high_freq_factor"},
     {"original_max_position_embeddings", "rope_original_seq_len"}}};

// What transformers takes where the file of such a model says nothing: the tokens of the first one of its
// kind.
struct DefaultTokens {
  std::string_view model_type;
  std::uint32_t begin_of_text;
  std::uint32_t end_of_text;
};
constexpr std::array<DefaultTokens, 2> kDefaultTokens = {{{"gpt2", 50256, 50256}, {"llama", 1, 2}}};

// The value of the field, or the default when there is none; null is a value, and says that there is no
// token.
json token_field(const json& config, const char* field, std::uint32_t DefaultTokens::*otherwise) {
  if (const auto found = config.find(field); found != config.end()) return *found;
  const auto type = config.find("model_type");
  for (const DefaultTokens& tokens : kDefaultTokens) {
    if (type != config.end() && *type == tokens.model_type) return tokens.*otherwise;
  }
  return nullptr;
}

SpecialTokens special_tokens_of(const json& config, std::int64_t vocab_size) {
  const auto is_token = [&](const json& value) { return value.is_number_unsigned() && value < vocab_size; };
  SpecialTokens special;
  if (const json begin = token_field(config, "bos_token_id", &DefaultTokens::begin_of_text);
      is_token(begin)) {
    special.begin_of_text = begin.get<std::uint32_t>();
  }
  const json ends = token_field(config, "eos_token_id", &DefaultTokens::end_of_text);
  for (const json& end : ends.is_array() ? ends : json::array({ends})) {
    if (is_token(end)) special.ends_of_text.push_back(end.get<std::uint32_t>());
  }
  return special;
}

class ConfigReader {
 public:
  ConfigReader(std::string_view text, const std::string& name)
      : name_(name), json_(parse_object(text, name)) {}

  FolderConfig read() {
    const std::string type = text_at("model_type");
    if (type == "gpt2") {
      read_gpt();
    } else if (type == "llama") {
      read_llama();
    } else if (type == "lockstep_mlp") {
      read_mlp();
    } else {
      throw UsageError(
          fmt::format("{}: model_type is '{}': lockstep reads gpt2, llama and lockstep_mlp", name_, type));
    }
    FolderConfig config = {.model = checked_model(), .dtype = dtype()};
    config.special = special_tokens_of(json_, config.model.vocab_size);
    return config;
  }

 private:
  void read_gpt() {
    run_.model.name = spec::ModelFamily::gpt;
    set("layers", "n_layer");
    set("width", "n_embd");
    set("heads", "n_head");
    set_if_given("ffn_width", "n_inner");
    set("vocab_size", "vocab_size");
    set("max_seq_len", "n_positions");
    set_if_given("norm_eps", "layer_norm_epsilon");
    expect("scale_attn_weights", true);
    for (const char* field : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"}) expect(field, false);
    if (const std::string gelu = text_at("activation_function", "gelu_new");
        gelu != "gelu_new" && gelu != "gelu_pytorch_tanh") {
      not_supported("activation_function", gelu);
    }
    expect("tie_word_embeddings", true);
  }

  void read_llama() {
    run_.model.name = spec::ModelFamily::llama;
    set("layers", "num_hidden_layers");
    set("width", "hidden_size");
    set("heads", "num_attention_heads");
    set_if_given("kv_heads", "num_key_value_heads");
    set_if_given("head_width", "head_dim");
    set("ffn_width", "intermediate_size");
    set("vocab_size", "vocab_size");
    set("max_seq_len", "max_position_embeddings");
    run_.model.norm_eps = 1e-6;
    set_if_given("norm_eps", "rms_norm_eps");
    set_if_given("rope_theta", "rope_theta");
    run_.model.tied_embeddings = false;
    set_if_given("tied_embeddings", "tie_word_embeddings");
    for (const char* field : {"attention_bias", "mlp_bias"}) expect(field, false);
    for (const char* field : {"rope_scaling", "rope_parameters"}) read_rotation(field);
    if (const std::string act = text_at("hidden_act", "silu"); act != "silu")
      not_supported("hidden_act", act);
  }

  // Newer folders hold the base of the rotary embedding in the same object as the way to stretch it.
  void read_rotation(const char* field) {
    const json& given = at(field);
    if (given.is_null()) return;
    if (!given.is_object()) not_supported(field, given.dump());
    const bool is_scaled = is_scaled_rotation(field, given);
    if (is_scaled) run_.model.rope_scaling = spec::RopeScaling::llama3;
    std::size_t read = 0;
    for (const auto& [name, value] : given.items()) {
      if (name == "rope_type" || name == "type") continue;
      const auto known =
          std::ranges::find(kRotation, std::string_view(name), &decltype(kRotation)::value_type::first);
      if (known == kRotation.end() || (!is_scaled && name != "rope_theta")) {
        not_supported(field, given.dump());
      }
      set_value(known->second, value, fmt::format("{} of {}", name, field));
      read += name != "rope_theta";
    }
    if (is_scaled && read + 1 != kRotation.size()) {
      throw DataError(
          fmt::format("{}: {} is {}, but type llama3 has a factor, a low_freq_factor, a "
                      "high_freq_factor and original_max_position_embeddings",
                      name_, field, given.dump()));
    }
  }

  bool is_scaled_rotation(const char* field, const json& given) const {
    json kind = "default";
    for (const char* name : {"type", "rope_type"}) {
      if (const auto found = given.find(name); found != given.end()) kind = *found;
    }
    if (kind != "default" && kind != "llama3") {
      throw UsageError(
          fmt::format("{}: {} is of type {}: lockstep reads default and llama3", name_, field, kind.dump()));
    }
    return kind == "llama3";
  }

  void read_mlp() {
    run_.model.name = spec::ModelFamily::mlp;
    set("layers", "num_hidden_layers");
    set("width", "hidden_size");
    set("max_seq_len", "num_inputs");
    set("vocab_size", "num_labels");
  }

  // Null when there is none.
  const json& at(const char* field) const {
    static const json kNone;
    const auto found = json_.find(field);
    return found == json_.end() ? kNone : *found;
  }

  std::string text_at(const char* field, const std::string& otherwise = {}) const {
    const json& value = at(field);
    if (value.is_null() && !otherwise.empty()) return otherwise;
    if (!value.is_string()) throw DataError(fmt::format("{}: {} is missing or no text", name_, field));
    return value.get<std::string>();
  }

  void set(const std::string& key, const char* field) {
    if (at(field).is_null()) throw DataError(fmt::format("{}: {} is missing", name_, field));
    set_if_given(key, field);
  }

  void set_if_given(const std::string& key_name, const char* field) {
    if (!at(field).is_null()) set_value(key_name, at(field), field);
  }

  void set_value(const std::string& key_name, const json& given, const std::string& field) {
    const spec::Key& key = *spec::find_key("model." + key_name);
    spec::Value value = key.get(run_);
    const auto refuse = [&](const std::string& why) {
      throw DataError(fmt::format("{}: {} {}", name_, field, why));
    };
    if (std::holds_alternative<bool>(value) && given.is_boolean()) {
      value = given.get<bool>();
    } else if (std::holds_alternative<double>(value) && given.is_number()) {
      value = given.get<double>();
    } else if (std::holds_alternative<std::int64_t>(value) && given.is_number_integer() &&
               (!given.is_number_unsigned() || given.get<std::uint64_t>() <= INT64_MAX)) {
      value = given.get<std::int64_t>();
    } else {
      refuse(fmt::format("is {}, which is of the wrong kind", given.dump()));
    }
    if (const auto why = spec::why_refused(key, value)) refuse(*why);
    key.set(run_, value);
  }

  // What the field must be if it is there, which is also what it is if it is not.
  void expect(const char* field, bool value) const {
    if (!at(field).is_null() && at(field) != value) not_supported(field, at(field).dump());
  }

  [[noreturn]] void not_supported(const char* field, const std::string& value) const {
    throw UsageError(fmt::format("{}: {} is {}, which lockstep's models do not have", name_, field, value));
  }

  spec::Model checked_model() {
    run_.training.seq_len = run_.model.max_seq_len;
    spec::fill_model(run_);
    try {
      spec::check_run(run_);
    } catch (const UsageError& error) {
      throw DataError(fmt::format("{}: {}", name_, error.what()));
    }
    return run_.model;
  }

  std::optional<DType> dtype() const {
    const json& given = at("torch_dtype").is_null() ? at("dtype") : at("torch_dtype");
    if (given == "float32") return DType::fp32;
    if (given == "bfloat16") return DType::bf16;
    if (given == "float16") return DType::fp16;
    return std::nullopt;
  }

  const std::string& name_;
  json json_;
  spec::RunSpec run_;
};

}  // namespace

FolderConfig read_config(std::string_view text, const std::string& name) {
  return ConfigReader(text, name).read();
}

SpecialTokens read_special_tokens(std::string_view text, const std::string& name, std::int64_t vocab_size) {
  return special_tokens_of(parse_object(text, name), vocab_size);
}

}  // namespace lockstep::checkpoint
