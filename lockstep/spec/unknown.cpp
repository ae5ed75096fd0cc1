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

// The full name of the key that was probably meant: one of the same name elsewhere, or a similar one here.
std::string meant_key(std::string_view section, std::string_view name) {
  std::vector<std::string> here;
  for (const Key& key : all_keys()) {
    if (key.name == name) return key.full_name();
    if (key.section == section) here.emplace_back(key.name);
  }
  const std::string similar = closest(name, here);
  return similar.empty() ? "" : fmt::format("{}.{}", section, similar);
}

std::string did_you_mean(const std::string& name) {
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

}  // namespace

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
    refuse(place,
           fmt::format("there is no key '{}.{}'{}", section, name, did_you_mean(meant_key(section, name))));
  }
  return *key;
}

}  // namespace lockstep::spec
