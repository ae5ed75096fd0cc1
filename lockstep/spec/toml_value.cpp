// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/toml_value.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lockstep/base/suggest.h"
#include "lockstep/spec/refuse.h"

namespace lockstep::spec {
namespace {

// What was found, in the words of type_of().
std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a floating-point number";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::optional<double> as_number(const toml::node& node) {
  return node.is_number() ? node.value<double>() : std::nullopt;
}

std::optional<Value> as_numbers(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (!list) return std::nullopt;
  std::vector<double> numbers;
  for (const toml::node& element : *list) {
    const auto number = as_number(element);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<Corpus> as_corpus(const toml::node& node) {
  if (const auto* path = node.as_string()) return Corpus{path->get()};
  const toml::table* table = node.as_table();
  if (!table || !table->contains("path") || table->size() > 2) return std::nullopt;
  const toml::node* weight = table->get("weight");
  if (table->size() == 2 && !weight) return std::nullopt;
  const auto path = table->get("path")->value_exact<std::string>();
  const auto number = weight ? as_number(*weight) : 1.0;
  if (!path || !number) return std::nullopt;
  return Corpus{*path, *number};
}

// Why a list has elements that are no corpora, as the end of a sentence that begins with the key; none: their
// type tells.
std::optional<std::string> why_no_corpora(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (!list) return std::nullopt;
  const std::vector<std::string> known = {"path", "weight"};
  for (const toml::node& element : *list) {
    const toml::table* table = element.as_table();
    if (!table) continue;
    for (const auto& [name, value] : *table) {
      if (std::ranges::count(known, name.str()) > 0) continue;
      return fmt::format("has a corpus with the key '{}': {}", printable_name(name.str()),
                         expected_name(name.str(), known));
    }
    if (!table->contains("path")) return "has a corpus without a path";
  }
  return std::nullopt;
}

std::optional<Value> as_corpora(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (!list) return std::nullopt;
  std::vector<Corpus> corpora;
  for (const toml::node& element : *list) {
    auto corpus = as_corpus(element);
    if (!corpus) return std::nullopt;
    corpora.push_back(std::move(*corpus));
  }
  return corpora;
}

template <typename T>
std::optional<Value> wrapped(const std::optional<T>& value) {
  return value ? std::optional<Value>(*value) : std::nullopt;
}

// By the type that the key has.
struct Convert {
  const toml::node& node;

  std::optional<Value> operator()(bool) const { return wrapped(node.value_exact<bool>()); }
  std::optional<Value> operator()(std::int64_t) const { return wrapped(node.value_exact<std::int64_t>()); }
  std::optional<Value> operator()(double) const { return wrapped(as_number(node)); }
  std::optional<Value> operator()(const std::string&) const {
    return wrapped(node.value_exact<std::string>());
  }
  std::optional<Value> operator()(const std::vector<double>&) const { return as_numbers(node); }
  std::optional<Value> operator()(const std::vector<Corpus>&) const { return as_corpora(node); }
};

struct TypeWords {
  std::string_view operator()(bool) const { return "true or false"; }
  std::string_view operator()(std::int64_t) const { return "a whole number"; }
  std::string_view operator()(double) const { return "a number"; }
  std::string_view operator()(const std::string&) const { return "a text"; }
  std::string_view operator()(const std::vector<double>&) const { return "a list of numbers"; }
  std::string_view operator()(const std::vector<Corpus>&) const {
    return "a list of paths or of { path = \"...\", weight = 1.0 }";
  }
};

}  // namespace

std::string_view type_of(const Key& key) {
  return std::visit(TypeWords{}, default_of(key));
}

std::string words_for_type(const Key& key) {
  return fmt::format("{}{}", type_of(key), key.accepted.when_auto ? " or \"auto\"" : "");
}

Setting setting_of(const Key& key, const toml::node& node, const std::string& place) {
  auto value = std::visit(Convert{node}, default_of(key));
  if (key.accepted.when_auto && node.value_exact<std::string>() == "auto") value = *key.accepted.when_auto;
  if (!value && std::holds_alternative<std::vector<Corpus>>(default_of(key))) {
    if (const auto why = why_no_corpora(node)) refuse(place, fmt::format("{} {}", key.full_name(), *why));
  }
  if (!value) {
    const bool both_lists = node.is_array() && type_of(key).starts_with("a list");
    refuse(place, fmt::format("{} must be {}, not {}", key.full_name(), words_for_type(key),
                              both_lists ? "one with other elements" : kind_of(node)));
  }
  if (const auto why = why_refused(key, *value)) refuse(place, fmt::format("{} {}", key.full_name(), *why));
  return {&key, *value, place};
}

}  // namespace lockstep::spec
