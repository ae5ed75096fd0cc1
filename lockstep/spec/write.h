// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/spec/key.h"

namespace lockstep::spec {

// A TOML string on one line.
std::string quoted(std::string_view text);

// A value as TOML writes it; numbers with all their bits.
std::string toml_of(const Value& value);
// The same of a key, for people: what "auto" stands for is that word again.
std::string toml_of(const Key& key, const Value& value);

// The value that a condition names.
std::string toml_of(const Condition& condition);

// A value of a key as its flag takes it: a text as it is, "auto" where that stands for it, the rest as above.
std::string text_of(const Key& key, const Value& value);

// A run file with every key. Reading it gives an equal RunSpec.
std::string to_toml(const RunSpec& run);

// docs/configuration.md: all keys with types, defaults, limits and descriptions.
std::string configuration_reference();

}  // namespace lockstep::spec
