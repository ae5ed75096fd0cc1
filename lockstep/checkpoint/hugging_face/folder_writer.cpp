// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/hugging_face/folder.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string file_name(std::size_t shard, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, count);
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    throw UsageError(fmt::format("cannot make the folder {}: {}", folder.string(), failure.message()));
  }
}

void remove_other_weights(const fs::path& folder, const std::set<std::string>& kept) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_weights = name.starts_with("model") && name.ends_with(".safetensors");
    if (is_weights && !kept.contains(name)) fs::remove(entry.path());
  }
}

void write_weights(const fs::path& folder, std::vector<std::vector<OutgoingTensor>> shards) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::uint64_t total = 0;
  std::set<std::string> written;
  // Without an index nobody takes a mixture of old and new files for a model.
  fs::remove(folder / kIndex);
  const std::size_t count = shards.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = *written.insert(file_name(i, count)).first;
    for (const OutgoingTensor& tensor : shards[i]) {
      map[tensor.name] = name;
      total += tensor.bytes();
    }
    write_safetensors((folder / name).string(), std::move(shards[i]), {{"format", "pt"}});
  }
  remove_other_weights(folder, written);
  if (count == 1) return;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_atomically((folder / kIndex).string(), index.dump(2) + "\n");
}

void write_tokenizer(const fs::path& folder, const FolderConfig& config, const data::Tokenizer& tokenizer) {
  write_atomically((folder / "tokenizer.json").string(), tokenizer.serialized());
  nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"model_max_length", config.model.max_seq_len},
                                 {"clean_up_tokenization_spaces", false}};
  if (config.end_of_text) {
    const data::Token token = *config.end_of_text;
    json["eos_token"] = tokenizer.decode(std::span(&token, 1));
  }
  write_atomically((folder / "tokenizer_config.json").string(), json.dump(2) + "\n");
}

}  // namespace

std::vector<std::vector<OutgoingTensor>> shards_of(std::vector<OutgoingTensor> tensors,
                                                   std::uint64_t max_bytes) {
  std::vector<std::vector<OutgoingTensor>> shards(1);
  std::uint64_t bytes = 0;
  for (OutgoingTensor& tensor : tensors) {
    if (!shards.back().empty() && bytes + tensor.bytes() > max_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

void save_folder(const std::string& path, const FolderConfig& config, std::vector<OutgoingTensor> tensors,
                 const data::Tokenizer* tokenizer, std::uint64_t max_shard_bytes) {
  const fs::path folder(path);
  make_folder(folder);
  write_weights(folder, shards_of(std::move(tensors), max_shard_bytes));
  if (tokenizer != nullptr) write_tokenizer(folder, config, *tokenizer);
  write_atomically((folder / "generation_config.json").string(), to_generation_config_json(config));
  write_atomically((folder / "config.json").string(), to_config_json(config));
}

}  // namespace lockstep::checkpoint
