// SPDX-License-Identifier: Apache-2.0
//
// config.json and generation_config.json of Hugging Face's transformers, for GPT-2 and LLaMA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::checkpoint {

// Tokens of a model that stand for no text.
struct SpecialTokens {
  std::optional<std::uint32_t> begin_of_text = std::nullopt;  // before a document
  std::vector<std::uint32_t> ends_of_text = {};               // each ends one; the first is the usual one
  bool operator==(const SpecialTokens&) const = default;
};

struct FolderConfig {
  spec::Model model;
  std::optional<DType> dtype = std::nullopt;  // of the weights, when the file tells
  SpecialTokens special = {};
};

// `name` is what errors call the file. DataError when it is corrupt or contradicts itself, UsageError when it
// describes a model that lockstep does not have.
FolderConfig read_config(std::string_view json, const std::string& name);

// Those below `vocab_size` that a config.json names, of whatever model. What it leaves out is as transformers
// has it for GPT-2 and LLaMA. DataError when the file is corrupt.
SpecialTokens read_special_tokens(std::string_view json, const std::string& name, std::int64_t vocab_size);

// A config.json of nothing else.
std::string to_special_tokens_json(const SpecialTokens& special);
std::string to_config_json(const FolderConfig& config);
std::string to_generation_config_json(const FolderConfig& config);

}  // namespace lockstep::checkpoint
