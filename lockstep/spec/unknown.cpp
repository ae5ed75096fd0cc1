// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/unknown.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/suggest.h"
#include "lockstep/spec/refuse.h"

namespace lockstep::spec {
namespace {

std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (names.empty() || names.back() != key.section) names.emplace_back(key.section);
  }
  return names;
}

std::vector<std::string> keys_of(std::string_view section) {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (key.section == section) names.emplace_back(key.name);
  }
  return names;
}

// The full name of the key that was probably meant: one of the same name elsewhere, or a similar one here.
std::string meant_key(std::string_view section, std::string_view name) {
  for (const Key& key : all_keys()) {
    if (key.name == name) return key.full_name();
  }
  const std::string similar = closest(name, keys_of(section));
  return similar.empty() ? "" : fmt::format("{}.{}", section, similar);
}

std::string advice_for(std::string_view section, std::string_view name) {
  const std::string meant = meant_key(section, name);
  return meant.empty() ? fmt::format("those of [{}] are {}", section, fmt::join(keys_of(section), ", "))
                       : fmt::format("did you mean '{}'?", meant);
}

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

std::string meant_flag(std::string_view typed, std::span<const std::string> others) {
  std::vector<std::string> flags(others.begin(), others.end());
  std::vector<std::string> names;
  for (const std::string& flag : others) names.push_back(with_underscores(flag));
  for (const Key& key : all_keys()) {
    flags.push_back(fmt::format("--{}", key.full_name()));
    names.push_back(fmt::format("__{}", key.name));
  }
  const auto found = std::ranges::find(names, closest(with_underscores(std::string(typed)), names));
  return found == names.end() ? "" : flags[static_cast<std::size_t>(found - names.begin())];
}

std::string sections_in_words() {
  return fmt::format("the sections are [{}]", fmt::join(sections(), "], ["));
}

void check_section(std::string_view section, const std::string& place) {
  const std::vector<std::string> names = sections();
  if (std::find(names.begin(), names.end(), section) != names.end()) return;
  const std::string meant = closest(section, names);
  refuse(place, fmt::format("there is no section [{}]; {}", section,
                            meant.empty() ? sections_in_words() : fmt::format("did you mean [{}]?", meant)));
}

const Key& known_key(std::string_view section, std::string_view name, const std::string& place) {
  check_section(section, place);
  const Key* key = find_key(fmt::format("{}.{}", section, name));
  if (!key) {
    refuse(place, fmt::format("there is no key '{}.{}'; {}", section, name, advice_for(section, name)));
  }
  return *key;
}

}  // namespace lockstep::spec
