// SPDX-License-Identifier: Apache-2.0
//
// The one table of keys. Parsing, flags, checks, the resolved configuration and docs/configuration.md all
// read it; a new key is a member of a struct in run_spec.h and a row in keys.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// What a key can hold, as TOML has it. An enumeration is the text of its name.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<Corpus>>;

// Of a number, or of each number of a list; both ends are included unless they are said not to be, and then a
// number must keep off them when it is rounded to fp32 as well.
struct Bounds {
  double least = 0.0;
  double most = 0.0;
  bool above_least = false;
  bool below_most = false;
};

// A key that has an effect only while another one has a certain value, or any but that one.
struct Condition {
  std::string_view key;    // "optimizer.name"
  std::string_view value;  // "sgd", as text_of() writes it
  bool other_than = false;
};

struct Accepted {
  Bounds bounds = {};
  std::vector<std::string_view> choices = {};  // of a text; empty: any text
  std::optional<std::int64_t> when_auto = {};  // of a whole number: what the text "auto" stands for
  std::vector<Condition> only_with = {};       // all of them
};

struct Key {
  std::string_view section;
  std::string_view name;
  std::string_view help;  // one line for users, no full stop
  Accepted accepted;
  Value (*get)(const RunSpec&) = nullptr;
  void (*set)(RunSpec&, const Value&) = nullptr;

  std::string full_name() const;  // "training.steps"
};

// In the order of the documentation, sections together.
std::span<const Key> all_keys();

// Null when there is none.
const Key* find_key(std::string_view full_name);

// What a run holds that sets nothing.
Value default_of(const Key& key);

bool holds(const Condition& condition, const RunSpec& run);

// Whether all of its conditions hold: if not, it does not matter what the key is set to.
bool has_effect(const Key& key, const RunSpec& run);

// Why a value of the key's type is refused, as the end of a sentence that begins with the key; none:
// accepted.
std::optional<std::string> why_refused(const Key& key, const Value& value);

// "1 to 10000", "one of a, b": what a value of the key must be, in words; empty: anything of its type.
std::string words_for(const Accepted& accepted);

}  // namespace lockstep::spec
