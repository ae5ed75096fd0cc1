// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/saved_progress.h"

#include <fstream>

#include <fmt/format.h>

#include "lockstep/base/output_file.h"

namespace lockstep::data {
namespace {

constexpr const char kVersion[] = "lockstep-prepare-1";

std::string to_text(const MegatronWriter::Mark& mark) {
  return fmt::format("{} {} {}", mark.sequences, mark.documents, mark.tokens);
}

std::istream& operator>>(std::istream& in, MegatronWriter::Mark& mark) {
  return in >> mark.sequences >> mark.documents >> mark.tokens;
}

}  // namespace

void save_progress(const std::string& path, const SavedProgress& progress) {
  write_atomically(path, fmt::format("{} {} {} {} {} {} {} end\n", kVersion, progress.settings,
                                     progress.chunks, progress.digest, progress.bytes,
                                     to_text(progress.train), to_text(progress.validation)));
}

std::optional<SavedProgress> load_progress(const std::string& path) {
  std::ifstream in(path);
  std::string version, end;
  SavedProgress progress;
  in >> version >> progress.settings >> progress.chunks >> progress.digest >> progress.bytes >>
      progress.train >> progress.validation >> end;
  return in && version == kVersion && end == "end" ? std::optional(progress) : std::nullopt;
}

}  // namespace lockstep::data
