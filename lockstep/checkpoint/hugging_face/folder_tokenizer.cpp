// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"

#include <filesystem>

#include "lockstep/base/disk.h"
#include "lockstep/base/error.h"
#include "lockstep/base/is_file.h"
#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"
#include "lockstep/data/tokenizer/file_content.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";

bool has_tokenizer(const fs::path& folder, const data::Tokenizer& tokenizer) {
  const fs::path file = folder / data::kTokenizerFile;
  return is_file(file) && data::tokenizer_content(file.string()) == tokenizer.serialized();
}

// What transformers would generate with: tokens that the model has.
bool is_fitting(const std::string& generation_config, std::int64_t vocab_size) {
  const auto config = nlohmann::json::parse(generation_config, nullptr, false);
  if (!config.is_object()) return false;
  for (const auto& [name, value] : config.items()) {
    if (!name.ends_with("_token_id")) continue;
    for (const nlohmann::json& token : value.is_array() ? value : nlohmann::json::array({value})) {
      if (token.is_number() && token >= vocab_size) return false;
    }
  }
  return true;
}

// The token that the field names: by its text, or by an object that has it as content.
std::optional<data::Token> named_token(const nlohmann::json& config, const char* field,
                                       const data::Tokenizer& tokenizer) {
  const auto found = config.find(field);
  if (found == config.end()) return std::nullopt;
  const nlohmann::json text = found->is_object() ? found->value("content", nlohmann::json()) : *found;
  return text.is_string() ? tokenizer.find(text.get<std::string>()) : std::nullopt;
}

// For folders that have a tokenizer and no model.
SpecialTokens named_tokens(const FolderTokenizer& from, const std::string& folder) {
  SpecialTokens special;
  const auto text = from.companions.find(kTokenizerConfig);
  if (text == from.companions.end() || from.tokenizer == nullptr) return special;
  const nlohmann::json config = parse_object(text->second, (fs::path(folder) / kTokenizerConfig).string());
  special.begin_of_text = named_token(config, "bos_token", *from.tokenizer);
  if (const auto end = named_token(config, "eos_token", *from.tokenizer)) special.ends_of_text = {*end};
  return special;
}

}  // namespace

SpecialTokens FolderTokenizer::special_tokens() const {
  if (special) return *special;
  const auto end = tokenizer != nullptr ? tokenizer->end_of_document() : std::nullopt;
  return end ? SpecialTokens{.begin_of_text = end, .ends_of_text = {*end}} : SpecialTokens{};
}

bool take_companions(const std::string& folder, std::int64_t vocab_size, FolderTokenizer& into,
                     WhenCorrupt when_corrupt) {
  const fs::path from(folder);
  if (into.tokenizer != nullptr && !has_tokenizer(from, *into.tokenizer)) return false;
  for (const std::string_view name : kCompanions) {
    if (into.tokenizer == nullptr && name != kGenerationConfig) continue;
    if (!is_file(from / name)) continue;
    std::string text = text_of_file((from / name).string());
    if (name == kGenerationConfig && !is_fitting(text, vocab_size)) continue;
    into.companions.emplace(name, std::move(text));
  }
  const auto tokens = [&](const auto& read) {
    try {
      return read();
    } catch (const DataError&) {
      if (when_corrupt == WhenCorrupt::refuse) throw;
      return SpecialTokens{};
    }
  };
  SpecialTokens special;
  if (const std::string config = (from / kConfig).string(); is_file(config)) {
    special = tokens(
        [&] { return read_special_tokens(text_of_file(config, kMaxConfigBytes), config, vocab_size); });
  }
  if (special == SpecialTokens{}) special = tokens([&] { return named_tokens(into, folder); });
  if (special != SpecialTokens{}) into.special = special;
  return into.special || !into.companions.empty();
}

void keep_companions(const std::string& folder, const FolderTokenizer& tokenizer) {
  const fs::path into(folder);
  real_disk().make_folder(folder);
  if (tokenizer.tokenizer != nullptr) {
    write_atomically((into / data::kTokenizerFile).string(), tokenizer.tokenizer->serialized());
  }
  for (const auto& [name, text] : tokenizer.companions) write_atomically((into / name).string(), text);
  // Last: it says that the others are there.
  write_atomically((into / kConfig).string(), to_special_tokens_json(tokenizer.special_tokens()));
}

bool has_kept_companions(const std::string& folder) {
  return is_file(fs::path(folder) / kConfig);
}

}  // namespace lockstep::checkpoint
