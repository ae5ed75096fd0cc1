// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/inputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kTextEndings = {".txt", ".text", ".md"};
constexpr std::array<std::string_view, 3> kJsonEndings = {".jsonl", ".ndjson", ".json"};

template <typename Endings>
bool ends_with_any(const std::string& name, const Endings& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::optional<InputFormat> format_of(std::string name) {
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (ends_with_any(name, kJsonEndings)) return InputFormat::jsonl;
  if (ends_with_any(name, kTextEndings)) return InputFormat::text;
  return std::nullopt;
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> found;
  try {
    for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator(); ++it) {
      if (is_hidden(it->path())) {
        if (it->is_directory()) it.disable_recursion_pending();
      } else if (it->is_regular_file() && format_of(it->path().string())) {
        found.push_back(it->path().string());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw UsageError(fmt::format("cannot read the folder {}: {}", folder, error.code().message()));
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format("the folder {} has no text: no file ends in .txt, .text, .md, .jsonl, .ndjson or "
                    ".json, with or without .gz",
                    folder));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<Input> list_inputs(const std::vector<std::string>& paths, std::string_view format) {
  if (format != "auto" && format != "text" && format != "jsonl") {
    throw UsageError(fmt::format("'{}' is no format of text: choose auto, text or jsonl", format));
  }
  std::vector<Input> inputs;
  const auto add = [&](const std::string& path) {
    const InputFormat by_name = format_of(path).value_or(InputFormat::text);
    inputs.push_back({path, format == "auto"   ? by_name
                            : format == "text" ? InputFormat::text
                                               : InputFormat::jsonl});
  };
  for (const std::string& path : paths) {
    std::error_code failure;
    if (path != "-" && !fs::exists(path, failure)) {
      throw UsageError(fmt::format("cannot read {}: {}", path,
                                   failure ? failure.message() : "there is no such file or folder"));
    }
    if (fs::is_directory(path, failure)) {
      for (const std::string& file : files_below(path)) add(file);
    } else {
      add(path);
    }
  }
  return inputs;
}

}  // namespace lockstep::data
