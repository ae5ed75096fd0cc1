// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"

#include <filesystem>

#include "lockstep/checkpoint/hugging_face/json_file.h"
#include "lockstep/data/tokenizer/file_content.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code not_there;
  return fs::is_regular_file(path, not_there);
}

bool has_another_tokenizer(const fs::path& folder, const data::Tokenizer& tokenizer) {
  const fs::path file = folder / "tokenizer.json";
  return is_file(file) && data::tokenizer_content(file.string()) != tokenizer.serialized();
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

bool take_companions(const std::string& folder, std::int64_t vocab_size, FolderTokenizer& into) {
  const fs::path from(folder);
  if (into.tokenizer != nullptr && has_another_tokenizer(from, *into.tokenizer)) return false;
  for (const std::string_view name : kCompanions) {
    if (into.tokenizer == nullptr && name != kGenerationConfig) continue;
    if (is_file(from / name)) into.companions.emplace(name, text_of_file((from / name).string()));
  }
  SpecialTokens special;
  if (const std::string config = (from / "config.json").string(); is_file(config)) {
    special = read_special_tokens(text_of_file(config), config, vocab_size);
  }
  if (special == SpecialTokens{}) special = named_tokens(into, folder);
  if (special != SpecialTokens{}) into.special = special;
  return into.special || !into.companions.empty();
}

}  // namespace lockstep::checkpoint
