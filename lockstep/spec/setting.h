// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/spec/key.h"

namespace lockstep::spec {

// One key as somebody has set it; the key accepts the value.
struct Setting {
  const Key* key = nullptr;
  Value value;
  std::string place;  // "run.toml:12" or "flag --training.steps"
};

// The settings of a run file. UsageError with file, line and key for what is not TOML, an unknown section or
// key (with the nearest one that exists), a wrong type or a value that the key does not accept.
std::vector<Setting> read_file_text(std::string_view text, const std::string& file);

// The settings of flags `--section.key value` and `--section.key=value`, where dashes may stand for
// underscores. A text is taken as it is, other values are written as in TOML, and a list may be written
// a,b,c. UsageError as above.
std::vector<Setting> read_flags(std::span<const std::string> arguments);

struct SplitArguments {
  std::vector<std::string> key_flags;  // for read_flags
  std::vector<std::string> others;
};

// Tells the flags of keys (those with a dot in their name) and their values from other arguments.
SplitArguments split_key_flags(std::span<const std::string> arguments);

}  // namespace lockstep::spec
