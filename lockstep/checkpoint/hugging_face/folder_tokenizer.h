// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/checkpoint/hugging_face/config.h"
#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::checkpoint {

inline constexpr const char* kGenerationConfig = "generation_config.json";
inline constexpr const char* kTokenizerConfig = "tokenizer_config.json";
// What may stand beside a tokenizer.json, and goes with it.
inline constexpr std::array<std::string_view, 6> kCompanions = {
    kGenerationConfig,   kTokenizerConfig,      "special_tokens_map.json",
    "added_tokens.json", "chat_template.jinja", "tokenizer.model"};

// A tokenizer as a folder of weights has it: with files beside it that lockstep does not need, but others do
// who open the folder.
struct FolderTokenizer {
  std::unique_ptr<data::Tokenizer> tokenizer = nullptr;  // null: there is none
  // Of the folder that it came from; none: what ends a document for the tokenizer also begins one.
  std::optional<SpecialTokens> special = std::nullopt;
  std::map<std::string, std::string> companions = {};  // content by name

  SpecialTokens special_tokens() const;
};

// Takes special tokens, below `vocab_size`, and companions over from a folder as transformers has written it;
// false when there is nothing to take. Nothing is taken from a folder with another tokenizer.json; a run
// without a tokenizer gets no files that speak of one. UsageError when a file cannot be read, DataError when
// one is corrupt.
bool take_companions(const std::string& folder, std::int64_t vocab_size, FolderTokenizer& into);

}  // namespace lockstep::checkpoint
