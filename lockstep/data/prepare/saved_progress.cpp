// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/saved_progress.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "lockstep/base/output_file.h"

namespace lockstep::data {
namespace {

constexpr const char kVersion[] = "lockstep-prepare-1";
constexpr std::size_t kMaxBytes = 256;  // eleven words, the longest of 20 digits

std::string to_text(const MegatronWriter::Mark& mark) {
  return fmt::format("{} {} {}", mark.sequences, mark.documents, mark.tokens);
}

std::string to_text(const SavedProgress& progress) {
  return fmt::format("{} {} {} {} {} {} {} end\n", kVersion, progress.settings, progress.chunks,
                     progress.digest, progress.bytes, to_text(progress.train), to_text(progress.validation));
}

std::istream& operator>>(std::istream& in, MegatronWriter::Mark& mark) {
  return in >> mark.sequences >> mark.documents >> mark.tokens;
}

}  // namespace

void save_progress(const std::string& path, const SavedProgress& progress) {
  write_atomically(path, to_text(progress));
}

std::optional<SavedProgress> load_progress(const std::string& path) {
  std::ifstream in(path);
  std::string text(kMaxBytes, '\0');
  in.read(text.data(), kMaxBytes);
  text.resize(static_cast<std::size_t>(in.gcount()));
  std::istringstream words(text);
  std::string version;
  SavedProgress progress;
  words >> version >> progress.settings >> progress.chunks >> progress.digest >> progress.bytes >>
      progress.train >> progress.validation;
  // Streams read more than they write: a number with a sign, any white space, what follows.
  return to_text(progress) == text ? std::optional(progress) : std::nullopt;
}

}  // namespace lockstep::data
