// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

enum class InputFormat { text, jsonl };

struct Input {
  std::string path;  // "-": standard input
  InputFormat format = InputFormat::text;
  bool operator==(const Input&) const = default;
};

// The files that `paths` mean. A folder means all files in it, and in its folders, whose names end in .txt,
// .text, .md, .jsonl, .ndjson or .json, each perhaps with .gz; hidden ones are left out, and the order is
// that of the names. `format` is "text", "jsonl" or "auto": by the name, text when that does not tell.
// UsageError when something is not there, or cannot be looked at, with the reason.
std::vector<Input> list_inputs(const std::vector<std::string>& paths, std::string_view format);

}  // namespace lockstep::data
