// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "lockstep/spec/refuse.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/toml_value.h"
#include "lockstep/spec/unknown.h"

namespace lockstep::spec {
namespace {

std::string place_of(const std::string& file, const toml::source_region& region) {
  return fmt::format("{}:{}", file, region.begin.line);
}

toml::table parse(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    refuse(place_of(file, error.source()), fmt::format("not valid TOML: {}", error.description()));
  }
}

}  // namespace

std::vector<Setting> read_file_text(std::string_view text, const std::string& file) {
  std::vector<Setting> settings;
  for (const auto& [section, content] : parse(text, file)) {
    const toml::table* table = content.as_table();
    if (!table) {
      refuse(place_of(file, content.source()),
             fmt::format("'{}' stands outside of a section; {}", section.str(), sections_in_words()));
    }
    check_section(section.str(), place_of(file, content.source()));
    for (const auto& [name, node] : *table) {
      const std::string place = place_of(file, node.source());
      settings.push_back(setting_of(known_key(section.str(), name.str(), place), node, place));
    }
  }
  return settings;
}

}  // namespace lockstep::spec
