// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model.safetensors.index.json";
// What files of such a folder are called, and those that a writer which died has left of them.
constexpr std::array<std::string_view, 4> kNames = {"config.json", "model-", "model.safetensors",
                                                    "tokenizer"};

std::string file_name(std::size_t shard, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, count);
}

bool is_written_here(const std::string& name) {
  const auto begins_it = [&](std::string_view known) { return name.starts_with(known); };
  return std::ranges::any_of(kNames, begins_it) || std::ranges::any_of(kCompanions, begins_it);
}

void make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    throw UsageError(fmt::format("cannot make the folder {}: {}", folder.string(), failure.message()));
  }
}

// Puts `fresh` in the place of `folder`. Where the file system cannot exchange two folders, a crash between
// the two steps leaves the old one beside its place, under the name that is given to it here.
void replace_folder(const fs::path& folder, const fs::path& fresh) {
  std::error_code failure;
  if (!fs::exists(folder)) {
    fs::rename(fresh, folder, failure);
  } else if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(fresh, failure);
  } else {
    const fs::path old = folder.string() + ".old";
    require_replaceable(old.string());
    fs::remove_all(old, failure);
    fs::rename(folder, old, failure);
    if (!failure) fs::rename(fresh, folder, failure);
    if (!failure) fs::remove_all(old, failure);
  }
  if (failure) throw UsageError(fmt::format("cannot replace {}: {}", folder.string(), failure.message()));
}

void write_weights(const fs::path& folder, std::vector<std::vector<OutgoingTensor>> shards) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::uint64_t total = 0;
  const std::size_t count = shards.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = file_name(i, count);
    for (const OutgoingTensor& tensor : shards[i]) {
      map[tensor.name] = name;
      total += tensor.bytes();
    }
    write_safetensors((folder / name).string(), std::move(shards[i]), {{"format", "pt"}});
  }
  if (count == 1) return;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_atomically((folder / kIndex).string(), index.dump(2) + "\n");
}

std::string tokenizer_config(const FolderConfig& config, const data::Tokenizer& tokenizer) {
  nlohmann::ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"model_max_length", config.model.max_seq_len},
                                 {"clean_up_tokenization_spaces", false}};
  const auto add = [&](const char* field, data::Token token) {
    const std::string text = tokenizer.has(token) ? tokenizer.decode(std::span(&token, 1)) : "";
    if (!text.empty() && data::valid_utf8_prefix(text) == text.size()) json[field] = text;
  };
  if (config.special.begin_of_text) add("bos_token", *config.special.begin_of_text);
  if (!config.special.ends_of_text.empty()) add("eos_token", config.special.ends_of_text.front());
  return json.dump(2) + "\n";
}

void write_texts(const fs::path& folder, const FolderConfig& config, const FolderTokenizer& tokenizer) {
  std::map<std::string, std::string> texts = tokenizer.companions;
  if (tokenizer.tokenizer != nullptr) {
    texts[data::kTokenizerFile] = tokenizer.tokenizer->serialized();
    texts.try_emplace(kTokenizerConfig, tokenizer_config(config, *tokenizer.tokenizer));
  }
  texts.try_emplace(kGenerationConfig, to_generation_config_json(config));
  texts["config.json"] = to_config_json(config);
  for (const auto& [name, text] : texts) write_atomically((folder / name).string(), text);
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

void require_replaceable(const std::string& path) {
  std::error_code nothing_there;
  const fs::file_status status = fs::symlink_status(path, nothing_there);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(fs::status(path, nothing_there))) {
    throw UsageError(fmt::format("{} is a file: name a folder for the weights that is not there yet", path));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path, nothing_there)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && is_written_here(name)) continue;
    throw UsageError(
        fmt::format("{} holds {}, which is no part of a folder of weights, and writing there would remove "
                    "it: name another "
                    "folder",
                    path, name));
  }
}

void save_folder(const std::string& path, const FolderConfig& config, std::vector<OutgoingTensor> tensors,
                 const FolderTokenizer& tokenizer, std::uint64_t max_shard_bytes) {
  fs::path folder = fs::weakly_canonical(path);
  if (folder.filename().empty()) folder = folder.parent_path();
  const fs::path fresh = folder.string() + ".partial";
  for (const fs::path& replaced : {folder, fresh}) require_replaceable(replaced.string());
  std::error_code ignored;
  fs::remove_all(fresh, ignored);
  make_folder(fresh);
  try {
    write_weights(fresh, shards_of(std::move(tensors), max_shard_bytes));
    write_texts(fresh, config, tokenizer);
  } catch (...) {
    fs::remove_all(fresh, ignored);
    throw;
  }
  replace_folder(folder, fresh);  // what is whole stays when this fails: it may be all that a run has left
}

}  // namespace lockstep::checkpoint
