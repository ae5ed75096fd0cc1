// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/hugging_face/weight_index.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/json_file.h"

namespace lockstep::checkpoint {
namespace {

// A zero byte would end the path early, in another file.
bool is_safetensors_name(const std::string& text) {
  return text.ends_with(".safetensors") && text.find_first_of(std::string_view("/\0", 2)) == text.npos;
}

}  // namespace

std::set<std::string> files_of_index(std::string_view json, const std::string& name) {
  const nlohmann::json index = parse_object(json, name);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    throw DataError(fmt::format("{}: weight_map is missing or empty", name));
  }
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_safetensors_name(file.get<std::string>())) {
      throw DataError(
          fmt::format("{}: tensor '{}' is said to be in {}, which is no name of a safetensors file", name,
                      tensor, file.dump()));
    }
    files.insert(file.get<std::string>());
  }
  return files;
}

}  // namespace lockstep::checkpoint
