// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/load.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "lockstep/spec/check.h"
#include "lockstep/spec/presets.h"
#include "lockstep/spec/refuse.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/write.h"

namespace lockstep::spec {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;  // nobody writes a longer run file

std::string read_text(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (!stream || std::filesystem::is_directory(file)) {
    const int error = errno != 0 ? errno : EISDIR;
    refuse(file.string(),
           fmt::format("cannot read the run file: {}", std::generic_category().message(error)));
  }
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostBytes) refuse(file.string(), "a run file has at most 1 MiB");
  return text;
}

// The preset first, so that every key that is given as well replaces its value.
RunSpec apply(std::span<const Setting> settings) {
  RunSpec run;
  for (const Setting& setting : settings) setting.key->set(run, setting.value);
  if (!run.model.preset.empty()) run.model = preset_model(run.model.preset);
  for (const Setting& setting : settings) setting.key->set(run, setting.value);
  return run;
}

Places places_of(std::span<const Setting> settings) {
  Places places;
  for (const Setting& setting : settings) places[setting.key->full_name()] = setting.place;
  return places;
}

RunSpec filled_run(std::span<const Setting> settings) {
  RunSpec run = apply(settings);
  fill_model(run);
  return run;
}

// A run goes on with another, or begins with weights: flags that say which are meant, also where the file,
// such as the resolved one of an earlier run, says the other. With auto both hold.
void prefer_flags(std::span<const Setting> flags, Checkpoint& checkpoint) {
  if (checkpoint.resume.empty() || checkpoint.resume == "auto" || checkpoint.initial_load_path.empty())
    return;
  const Places given = places_of(flags);
  const bool resumes = given.contains("checkpoint.resume");
  const bool begins = given.contains("checkpoint.initial_load_path");
  if (resumes && !begins) checkpoint.initial_load_path = "";
  if (begins && !resumes) checkpoint.resume = "";
}

// Whoever names a preset by a flag means that model: the file may not replace a part of it unsaid. Dropout is
// no part of it.
void require_whole_preset(std::span<const Setting> file, std::span<const Setting> flags, const RunSpec& run) {
  const RunSpec meant = filled_run(flags);
  if (meant.model.preset.empty()) return;
  std::vector<std::string> replaced;
  std::string first;  // where
  for (const Setting& setting : file) {
    const Key& key = *setting.key;
    const bool is_part = key.section == "model" && key.name != "dropout";
    if (!is_part || key.get(run) == key.get(meant)) continue;
    if (replaced.empty()) first = setting.place;
    replaced.push_back(fmt::format("{} is {}, not {}", key.full_name(), text_of(key, key.get(run)),
                                   text_of(key, key.get(meant))));
  }
  if (replaced.empty()) return;
  refuse(first, fmt::format("--model.preset {} is another model than the file says: {}; remove the lines, or "
                            "give what shall differ as flags too",
                            meant.model.preset, fmt::join(replaced, ", ")));
}

PlacedRun parse_placed_run(std::string_view text, const std::string& file,
                           std::span<const std::string> key_flags) {
  std::vector<Setting> settings = read_file_text(text, file);
  const std::vector<Setting> flags = read_flags(key_flags);
  const std::size_t in_file = settings.size();
  settings.insert(settings.end(), flags.begin(), flags.end());
  PlacedRun placed = {filled_run(settings), places_of(settings)};
  require_whole_preset(std::span(settings).first(in_file), flags, placed.run);
  prefer_flags(flags, placed.run.checkpoint);
  check_effects(placed.run, placed.places);
  check_run(placed.run, placed.places);
  return placed;
}

}  // namespace

RunSpec parse_run(std::string_view text, const std::string& file, std::span<const std::string> key_flags) {
  return parse_placed_run(text, file, key_flags).run;
}

RunSpec parse_saved_run(std::string_view text, const std::string& file) {
  const std::vector<Setting> settings = read_file_text(text, file);
  RunSpec run = filled_run(settings);
  check_run(run, places_of(settings));
  return run;
}

RunSpec load_saved_run(const std::filesystem::path& file) {
  return parse_saved_run(read_text(file), file.string());
}

PlacedRun load_placed_run(const std::filesystem::path& file, std::span<const std::string> key_flags) {
  return parse_placed_run(read_text(file), file.string(), key_flags);
}

RunSpec load_run(const std::filesystem::path& file, std::span<const std::string> key_flags) {
  return load_placed_run(file, key_flags).run;
}

}  // namespace lockstep::spec
