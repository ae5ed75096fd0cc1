// SPDX-License-Identifier: Apache-2.0
//
// Between TOML and values of keys. For the sources of this folder only: it brings toml++ with it.
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "lockstep/spec/key.h"
#include "lockstep/spec/setting.h"

namespace lockstep::spec {

// "a whole number": the type of a key in words.
std::string_view type_of(const Key& key);
// The same, with the text that may stand for one.
std::string words_for_type(const Key& key);

// The node as a value that the key accepts; UsageError otherwise.
Setting setting_of(const Key& key, const toml::node& node, const std::string& place);

}  // namespace lockstep::spec
