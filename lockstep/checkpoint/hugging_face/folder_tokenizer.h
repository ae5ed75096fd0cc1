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
    "added_tokens.json", "chat_template.jinja", data::kPieceFile};

// A tokenizer as a folder of weights has it: with files beside it that lockstep does not need, but others do
// who open the folder.
struct FolderTokenizer {
  std::unique_ptr<data::Tokenizer> tokenizer = nullptr;  // null: there is none
  // Of the folder that it came from; none: what ends a document for the tokenizer also begins one.
  std::optional<SpecialTokens> special = std::nullopt;
  std::map<std::string, std::string> companions = {};  // content by name

  SpecialTokens special_tokens() const;
};

enum class WhenCorrupt { refuse, ignore };

// Takes special tokens, below `vocab_size`, and companions over from a folder as transformers has written it;
// false when there is nothing to take. For a tokenizer, nothing is taken from a folder without the same
// tokenizer.json; a run without one gets no files that speak of one. A generation_config.json with tokens
// beyond the vocabulary is left. UsageError when a file cannot be read; DataError when one that names tokens
// is corrupt, unless it is to be ignored, as in a folder where it may be somebody else's.
bool take_companions(const std::string& folder, std::int64_t vocab_size, FolderTokenizer& into,
                     WhenCorrupt when_corrupt = WhenCorrupt::refuse);

// Writes a folder that take_companions() takes the same from; it is no folder of weights. UsageError when
// something cannot be written.
void keep_companions(const std::string& folder, const FolderTokenizer& tokenizer);
// Such a folder is there, and whole.
bool has_kept_companions(const std::string& folder);

}  // namespace lockstep::checkpoint
