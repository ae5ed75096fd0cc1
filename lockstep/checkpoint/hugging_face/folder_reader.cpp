// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

// The files that an index names. It comes from outside: a name that leads out of the folder is refused.
std::set<std::string> files_of_index(const std::string& path) {
  const nlohmann::json index = parse_object(text_of_file(path), path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    throw DataError(fmt::format("{}: weight_map is missing or empty", path));
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const bool is_name = file.is_string() &&
                         fs::path(file.get<std::string>()).filename() == file.get<std::string>() &&
                         file.get<std::string>().ends_with(".safetensors");
    if (!is_name) {
      throw DataError(
          fmt::format("{}: tensor '{}' is said to be in {}, which is no name of a safetensors file", path,
                      tensor, file.dump()));
    }
    files.insert(file.get<std::string>());
  }
  return files;
}

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
  for (const std::string& file : files_of_index(index)) {
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
