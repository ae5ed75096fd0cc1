// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/byte_map.h"
#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/json_fields.h"
#include "lockstep/data/tokenizer/json_reason.h"
#include "lockstep/data/tokenizer/metaspace_rules.h"
#include "lockstep/data/tokenizer/splitter.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

class Reader : JsonFields {
 public:
  explicit Reader(const std::string& name) : JsonFields(name) {}

  BpeModel read(std::string_view text) {
    const Json file = parse(text);
    const Json& model = member(file, "model", Json::value_t::object);
    if (text_of(model, "type", "BPE") != "BPE") unsupported("model type " + text_of(model, "type", "BPE"));
    read_flags(model);
    if (flag_of(model, "byte_fallback", false)) model_.metaspace = read_metaspace_rules(file, *this);
    read_vocabulary(member(model, "vocab", Json::value_t::object));
    read_merges(member(model, "merges", Json::value_t::array));
    read_added(file);
    check_merges();
    if (model_.metaspace) {
      check_bytes();
    } else {
      read_normalizer(file);
      read_pre_tokenizer(file);
    }
    return std::move(model_);
  }

 private:
  Json parse(std::string_view text) const {
    try {
      Json file = Json::parse(text);
      if (!file.is_object()) corrupt("the file is not a JSON object");
      return file;
    } catch (const Json::exception& error) {
      corrupt("this is not valid JSON: " + json_reason(error));
    }
  }

  Token id_of(const Json& value, const std::string& token) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= id_limit_) {
      corrupt(fmt::format("the id of token '{}' is not a number below {}", token, id_limit_));
    }
    return value.get<Token>();
  }

  void read_flags(const Json& model) {
    model_.ignore_merges = flag_of(model, "ignore_merges", false);
    if (model_.ignore_merges && flag_of(model, "byte_fallback", false)) {
      unsupported("ignore_merges together with byte_fallback");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_of(model, key, "").empty()) unsupported(key);
    }
  }

  void put(Token id, std::string bytes, const std::string& token) {
    if (id >= model_.tokens.size()) model_.tokens.resize(id + 1);
    if (!model_.tokens[id].empty())
      corrupt(fmt::format("token '{}' has the id {} of another token", token, id));
    model_.tokens[id] = std::move(bytes);
  }

  void read_vocabulary(const Json& vocabulary) {
    // Numberings have small holes; a huge id in a small file would only take memory.
    id_limit_ = std::min<std::uint64_t>(kMaxVocabulary, vocabulary.size() + kMaxHoles);
    for (const auto& [token, value] : vocabulary.items()) {
      const Token id = id_of(value, token);
      put(id, bytes_in_text(token), token);
      ids_.emplace(token, id);
      if (model_.metaspace) note_token(*model_.metaspace, token, id);
    }
  }

  std::string bytes_in_text(const std::string& token) const {
    if (model_.metaspace) return metaspace_bytes(token);
    // What is not in the visible alphabet can only be a special token, which stands in the text as it is.
    return from_visible(token).value_or(token);
  }

  Token token_of(const std::string& text, std::size_t merge) const {
    const auto found = ids_.find(text);
    if (found == ids_.end())
      corrupt(fmt::format("merge {} names '{}', which is not in the vocabulary", merge, text));
    return found->second;
  }

  std::pair<std::string, std::string> halves_of(const Json& merge, std::size_t number) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      corrupt(fmt::format("merge {} is neither a pair of strings nor two words", number));
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  void read_merges(const Json& merges) {
    std::set<std::pair<Token, Token>> seen;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = halves_of(merges[i], i);
      const Merge merge{token_of(left, i), token_of(right, i), token_of(left + right, i)};
      if (!seen.emplace(merge.left, merge.right).second) corrupt(fmt::format("merge {} comes twice", i));
      model_.merges.push_back(merge);
    }
  }

  void read_added(const Json& file) {
    const Json* added = optional(file, "added_tokens");
    if (added == nullptr) return;
    if (!added->is_array()) corrupt("'added_tokens' is not a list");
    for (const Json& token : *added) {
      if (!token.is_object()) corrupt("an added token is not an object");
      const std::string text = member(token, "content", Json::value_t::string).get<std::string>();
      if (text.empty()) corrupt("an added token is empty");
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (flag_of(token, key, false)) unsupported(fmt::format("{} of the added token '{}'", key, text));
      }
      if (optional(token, "id") == nullptr) corrupt(fmt::format("the added token '{}' has no id", text));
      const Token id = id_of(token["id"], text);
      const auto known = ids_.find(text);
      if (known != ids_.end() && known->second != id)
        corrupt(fmt::format("the added token '{}' has two ids", text));
      const std::string bytes = model_.metaspace ? metaspace_bytes(text) : text;
      if (known == ids_.end()) put(id, bytes, text);
      model_.tokens[id] = bytes;
      model_.added.push_back(
          {id, text, flag_of(token, "special", false), flag_of(token, "normalized", false)});
    }
  }

  // What comes out of a merge must be what went in, or text would not survive.
  void check_merges() const {
    for (std::size_t i = 0; i < model_.merges.size(); ++i) {
      const Merge& merge = model_.merges[i];
      if (model_.tokens[merge.result] != model_.tokens[merge.left] + model_.tokens[merge.right]) {
        corrupt(fmt::format("merge {} uses a token that {}", i,
                            model_.metaspace ? "stands for a byte" : "is not made of bytes"));
      }
    }
  }

  // Without one of them some text could not be encoded.
  void check_bytes() const {
    const auto& bytes = model_.metaspace->bytes;
    const auto missing = std::find(bytes.begin(), bytes.end(), kNoToken);
    if (missing == bytes.end()) return;
    corrupt(fmt::format("byte_fallback needs a token for every byte, but there is no <0x{:02X}>",
                        missing - bytes.begin()));
  }

  void read_normalizer(const Json& file) {
    const Json* normalizer = optional(file, "normalizer");
    if (normalizer == nullptr) return;
    const std::string type = normalizer->is_object() ? text_of(*normalizer, "type", "") : "";
    if (type != "NFC") unsupported(fmt::format("normalizer '{}'", type));
    model_.compose = true;
  }

  void read_pre_tokenizer(const Json& file) {
    const Json* pre_tokenizer = optional(file, "pre_tokenizer");
    if (pre_tokenizer != nullptr) read_stage(*pre_tokenizer, 0);
    if (!byte_level_) unsupported("a pre_tokenizer without ByteLevel");
  }

  void read_stage(const Json& stage, int depth) {
    if (!stage.is_object() || depth > 4) corrupt("'pre_tokenizer' is not an object, or nested too deeply");
    const std::string type = text_of(stage, "type", "");
    if (byte_level_) unsupported(fmt::format("pre_tokenizer '{}' after ByteLevel", type));
    if (type == "Sequence") {
      for (const Json& inner : member(stage, "pretokenizers", Json::value_t::array))
        read_stage(inner, depth + 1);
    } else if (type == "ByteLevel") {
      if (flag_of(stage, "add_prefix_space", true)) unsupported("add_prefix_space");
      if (flag_of(stage, "use_regex", true)) model_.patterns.emplace_back(kGpt2Pattern);
      byte_level_ = true;
    } else if (type == "Digits") {
      model_.patterns.emplace_back(flag_of(stage, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Split") {
      const Json& pattern = member(stage, "pattern", Json::value_t::object);
      if (pattern.find("Regex") == pattern.end()) unsupported("a Split by a fixed string");
      if (text_of(stage, "behavior", "") != "Isolated" || flag_of(stage, "invert", false)) {
        unsupported(
            fmt::format("a Split that is inverted or {}", text_of(stage, "behavior", "has no behavior")));
      }
      model_.patterns.push_back(text_of(pattern, "Regex", ""));
    } else {
      const char* why = type == "Metaspace" ? " without byte_fallback" : "";
      unsupported(fmt::format("pre_tokenizer '{}'{}", type, why));
    }
  }

  static constexpr std::uint64_t kMaxHoles = 65536;

  std::uint64_t id_limit_ = 0;
  BpeModel model_;
  std::unordered_map<std::string, Token> ids_;
  bool byte_level_ = false;
};

}  // namespace

BpeModel from_hugging_face(std::string_view json, const std::string& name) {
  return Reader(name).read(json);
}

}  // namespace lockstep::data
