// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/write.h"

#include <fmt/format.h>

namespace lockstep::spec {
namespace {

// The shortest digits that read back as the same number; TOML asks for a point or an exponent.
std::string real(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string corpus(const Corpus& corpus) {
  if (corpus.weight == 1.0) return quoted(corpus.path);
  return fmt::format("{{ path = {}, weight = {} }}", quoted(corpus.path), real(corpus.weight));
}

template <typename T>
std::string list(const std::vector<T>& values, std::string (*write)(const T&)) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + write(value);
  return "[" + text + "]";
}

struct Write {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return real(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<double>& values) const {
    return list<double>(values, [](const double& value) { return real(value); });
  }
  std::string operator()(const std::vector<Corpus>& values) const { return list<Corpus>(values, corpus); }
};

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string toml_of(const Value& value) {
  return std::visit(Write{}, value);
}

std::string toml_of(const Key& key, const Value& value) {
  const auto& when_auto = key.accepted.when_auto;
  return when_auto && value == Value(*when_auto) ? quoted("auto") : toml_of(value);
}

std::string toml_of(const Condition& condition) {
  const Key& other = *find_key(condition.key);
  const bool is_text = std::holds_alternative<std::string>(default_of(other)) || condition.value == "auto";
  return is_text ? quoted(condition.value) : std::string(condition.value);
}

std::string text_of(const Key& key, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  const bool is_auto = key.accepted.when_auto && value == Value(*key.accepted.when_auto);
  return is_auto ? "auto" : toml_of(value);
}

std::string to_toml(const RunSpec& run) {
  std::string text;
  std::string_view section;
  for (const Key& key : all_keys()) {
    if (key.section != section) {
      text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", key.section);
      section = key.section;
    }
    text += fmt::format("{} = {}\n", key.name, toml_of(key.get(run)));
  }
  return text;
}

}  // namespace lockstep::spec
