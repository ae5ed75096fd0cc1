// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

void check_known(const Settings& settings, std::string_view where) {
  for (const auto& setting : settings) {
    const std::string& name = setting.first;
    const bool known = std::any_of(kFields.begin(), kFields.end(),
                                   [&](const Field& field) { return field.setting == name; });
    if (!known) throw UsageError(fmt::format("{}: unknown placement setting {}", where, quote(name)));
  }
}

}  // namespace

Lookup::Lookup(const PlacementInputs& inputs) : inputs_(inputs), launcher_(believed_launcher()) {
  check_known(inputs_.config, inputs_.config_name);
  check_known(inputs_.command_line, "the command line");
}

const std::string* Lookup::in_environment(std::string_view name) const {
  const auto found = inputs_.environment.find(name);
  return name.empty() || found == inputs_.environment.end() ? nullptr : &found->second;
}

std::optional<Launcher> Lookup::believed_launcher() const {
  for (std::size_t launcher = 0; launcher < launcher_count; ++launcher) {
    if (in_environment(kRank.theirs[launcher]) || in_environment(kWorld.theirs[launcher])) {
      return static_cast<Launcher>(launcher);
    }
  }
  return std::nullopt;
}

std::optional<NamedText> Lookup::by_user(const Field& field) const {
  if (const auto flag = inputs_.command_line.find(field.setting); flag != inputs_.command_line.end()) {
    return NamedText{fmt::format("--{}", field.setting), flag->second};
  }
  if (const std::string* text = in_environment(field.ours)) {
    return NamedText{std::string(field.ours), *text};
  }
  return std::nullopt;
}

std::optional<NamedText> Lookup::by_launcher(const Field& field, std::size_t launcher) const {
  const std::string_view name = field.theirs[launcher];
  const std::string* text = in_environment(name);
  if (!text) return std::nullopt;
  const bool plain_name = launcher == torchrun && !name.starts_with("TORCH") && !name.starts_with("OMP_");
  return NamedText{plain_name ? fmt::format("{} (torchrun)", name) : std::string(name), *text};
}

std::optional<NamedText> Lookup::by_config(const Field& field) const {
  const auto found = inputs_.config.find(field.setting);
  if (found == inputs_.config.end()) return std::nullopt;
  return NamedText{fmt::format("{} ({})", field.setting, inputs_.config_name), found->second};
}

std::optional<NamedText> Lookup::identity(const Field& field) const {
  if (auto text = by_user(field)) return text;
  if (launcher_) {
    if (auto text = by_launcher(field, *launcher_)) return text;
  }
  return by_config(field);
}

std::optional<NamedText> Lookup::any(const Field& field) const {
  if (auto text = by_user(field)) return text;
  for (std::size_t launcher = 0; launcher < launcher_count; ++launcher) {
    if (auto text = by_launcher(field, launcher)) return text;
  }
  return by_config(field);
}

}  // namespace lockstep::rendezvous
