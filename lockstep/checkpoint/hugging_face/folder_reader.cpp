// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"
#include "lockstep/checkpoint/hugging_face/weight_index.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

}  // namespace

ModelFolder::ModelFolder(const std::string& path) : path_(path) {
  const fs::path folder(path);
  const std::string config_file = (folder / "config.json").string();
  if (!fs::exists(config_file)) {
    throw UsageError(
        fmt::format("{}: there is no config.json: name a folder that lockstep train or "
                    "transformers have written",
                    path));
  }
  config_ = read_config(text_of_file(config_file), config_file);
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

std::vector<std::string> ModelFolder::names() const {
  std::vector<std::string> names;
  for (const auto& file : files_) {
    for (const auto& [name, tensor] : file->header().tensors) names.push_back(name);
  }
  return names;
}

}  // namespace lockstep::checkpoint
