// SPDX-License-Identifier: Apache-2.0
//
// config.json and generation_config.json of Hugging Face's transformers, for GPT-2 and LLaMA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/dtype.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::checkpoint {

struct FolderConfig {
  spec::Model model;
  std::optional<DType> dtype = std::nullopt;                // of the weights, when the file tells
  std::optional<std::uint32_t> end_of_text = std::nullopt;  // the token of the model that ends a document
};

// `name` is what errors call the file. DataError when it is corrupt or contradicts itself, UsageError when it
// describes a model that lockstep does not have.
FolderConfig read_config(std::string_view json, const std::string& name);

std::string to_config_json(const FolderConfig& config);
std::string to_generation_config_json(const FolderConfig& config);

}  // namespace lockstep::checkpoint
