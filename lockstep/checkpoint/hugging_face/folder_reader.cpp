// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"
#include "lockstep/checkpoint/hugging_face/weight_index.h"
#include "lockstep/checkpoint/store/store.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";

// What the folder is instead of one with a configuration, and which one to name.
std::string why_no_model(const fs::path& folder) {
  if (!fs::exists(folder)) return "there is no such folder";
  if (const fs::path model = folder / "model"; fs::exists(model / kConfig)) {
    return fmt::format("it is the folder of a run: name its model, {}", model.string());
  }
  if (holds_checkpoints(folder.string())) {
    return fmt::format(
        "it holds a checkpoint: make a folder of weights with `lockstep checkpoint export {} --hf FOLDER`",
        folder.string());
  }
  return "there is no config.json: name a folder that lockstep train or transformers have written";
}

}  // namespace

ModelFolder::ModelFolder(const std::string& path) : path_(path) {
  const fs::path folder(path);
  const std::string config_file = (folder / kConfig).string();
  if (!fs::exists(config_file)) throw UsageError(fmt::format("{}: {}", path, why_no_model(folder)));
  config_ = read_config(text_of_file(config_file, kMaxConfigBytes), config_file);
  const std::string index = (folder / "model.safetensors.index.json").string();
  if (!fs::exists(index) || fs::exists(folder / "model.safetensors")) {
    files_.push_back(std::make_unique<SafetensorsFile>((folder / "model.safetensors").string()));
    return;
  }
  for (const std::string& file : files_of_index(text_of_file(index), index)) {
    files_.push_back(std::make_unique<SafetensorsFile>((folder / file).string()));
  }
}

ModelFolder::Found ModelFolder::find(std::string_view name) const {
  for (const auto& file : files_) {
    const auto& tensors = file->header().tensors;
    if (const auto found = tensors.find(name); found != tensors.end()) return {file.get(), &found->second};
  }
  return {};
}

std::uint64_t ModelFolder::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) {
    for (const auto& [name, tensor] : file->header().tensors) sum += tensor.end - tensor.begin;
  }
  return sum;
}

std::vector<std::string> ModelFolder::names() const {
  std::vector<std::string> names;
  for (const auto& file : files_) {
    for (const auto& [name, tensor] : file->header().tensors) names.push_back(name);
  }
  return names;
}

}  // namespace lockstep::checkpoint
