// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lockstep/spec/refuse.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/toml_value.h"
#include "lockstep/spec/unknown.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

// More than the 18 digits that any whole number may have.
bool is_long_number(std::string_view text) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  return text.size() > 18 && std::ranges::all_of(text, is_digit);
}

struct Flag {
  std::string name;                  // "training.steps"
  std::optional<std::string> value;  // what stands behind an equals sign
};

// None for an argument that is no flag of a key.
std::optional<Flag> as_flag(std::string_view argument) {
  if (!argument.starts_with("--")) return std::nullopt;
  const std::size_t equals = argument.find('=');
  Flag flag{std::string(argument.substr(2, equals == argument.npos ? argument.npos : equals - 2)), {}};
  if (flag.name.find('.') == std::string::npos) return std::nullopt;
  if (equals != argument.npos) flag.value = argument.substr(equals + 1);
  std::replace(flag.name.begin(), flag.name.end(), '-', '_');
  return flag;
}

// a,b,c as TOML; what begins with a bracket is TOML already.
std::string list_as_toml(std::string_view text, bool of_texts) {
  if (text.starts_with('[')) return std::string(text);
  std::string list = "[";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view element = text.substr(begin, end - begin);
    list += (of_texts ? quoted(element) : std::string(element)) + ",";
    begin = end + 1;
  }
  return list + "]";
}

std::string as_toml(const Key& key, std::string_view text) {
  const Value type = default_of(key);
  const bool is_auto = key.accepted.when_auto && text == "auto";
  if (is_auto || std::holds_alternative<std::string>(type)) return quoted(text);
  if (std::holds_alternative<std::vector<double>>(type)) return list_as_toml(text, false);
  if (std::holds_alternative<std::vector<Corpus>>(type)) return list_as_toml(text, true);
  return std::string(text);
}

Setting parse_value(const Key& key, const std::string& text, const std::string& place) {
  const auto bad = [&] {
    refuse(place, fmt::format("{} must be {}, not '{}'{}", key.full_name(), words_for_type(key), text,
                              is_long_number(text) ? ", which has too many digits" : ""));
  };
  // A line break could begin another key, and TOML has no control characters.
  if (std::ranges::any_of(text, [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; })) {
    refuse(place, fmt::format("{} must be one line without control characters", key.full_name()));
  }
  toml::table table;
  try {
    table = toml::parse("value = " + as_toml(key, text));
  } catch (const toml::parse_error&) {
    bad();
  }
  return setting_of(key, *table.get("value"), place);
}

}  // namespace

std::vector<Setting> read_flags(std::span<const std::string> arguments) {
  std::vector<Setting> settings;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const auto flag = as_flag(arguments[at]);
    if (!flag) {
      const std::string meant = meant_flag(arguments[at].substr(0, arguments[at].find('=')));
      refuse("", fmt::format("'{}' is not the flag of a key{}", arguments[at],
                             meant.empty() ? ", such as --training.steps"
                                           : fmt::format("; did you mean '{}'?", meant)));
    }
    const std::string place = "flag --" + flag->name;
    const std::size_t dot = flag->name.find('.');
    const Key& key = known_key(flag->name.substr(0, dot), flag->name.substr(dot + 1), place);
    if (!flag->value && ++at == arguments.size())
      refuse(place, fmt::format("must be followed by {}", words_for_type(key)));
    settings.push_back(parse_value(key, flag->value ? *flag->value : arguments[at], place));
  }
  return settings;
}

SplitArguments split_key_flags(std::span<const std::string> arguments) {
  SplitArguments split;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const auto flag = as_flag(arguments[at]);
    (flag ? split.key_flags : split.others).push_back(arguments[at]);
    if (flag && !flag->value && at + 1 < arguments.size()) split.key_flags.push_back(arguments[++at]);
  }
  return split;
}

}  // namespace lockstep::spec
