// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/spec/check.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// The run that a file and flags describe: a flag comes before the file, the file before the preset, the
// preset before the defaults (a file that replaces a part of a preset which a flag names is refused); so does
// --resume PATH before an --init-from of the file, and the other way round. What follows from other keys is
// filled in, and keys that contradict each other are refused. UsageError names the place, the key, and what
// to do.
RunSpec load_run(const std::filesystem::path& file, std::span<const std::string> key_flags = {});

// The same with the places of its keys, for what shows only once the number of workers is known.
struct PlacedRun {
  RunSpec run;
  Places places;
};
PlacedRun load_placed_run(const std::filesystem::path& file, std::span<const std::string> key_flags = {});

// The same from a text that has been read already; `file` is its name in errors. An empty text is a run of
// flags alone.
RunSpec parse_run(std::string_view text, const std::string& file,
                  std::span<const std::string> key_flags = {});

// The same from what to_toml() has written, maybe that of an older version: keys without effect may be set.
RunSpec parse_saved_run(std::string_view text, const std::string& file);
RunSpec load_saved_run(const std::filesystem::path& file);

}  // namespace lockstep::spec
