// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/corpus.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/is_file.h"
#include "lockstep/data/corpus/formats.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// What the files of a corpus that is named by one of them, or by this, may begin with.
std::array<std::string, 2> prefixes_of(const std::string& path) {
  std::string stem = path;
  if (path.ends_with(".bin") || path.ends_with(".idx")) stem.resize(path.size() - 4);
  return {stem, stem + "_text_document"};
}

// The prefix of the Megatron pair that `path` names; empty when it names none.
std::string megatron_prefix(const std::string& path) {
  for (const std::string& prefix : prefixes_of(path)) {
    if (is_file(prefix + ".idx")) return prefix;
  }
  return {};
}

// For a path that names none: because nothing is there, or because what is cannot be looked at.
[[noreturn]] void refuse_missing(const std::string& path) {
  const auto [stem, preprocessed] = prefixes_of(path);
  for (const std::string& place : {path, stem + ".idx", preprocessed + ".idx"}) {
    std::error_code failure;
    if (fs::exists(place, failure) || !failure) continue;
    throw UsageError(fmt::format("cannot look for the corpus {}: {}: {}", path, place, failure.message()));
  }
  throw UsageError(
      fmt::format("there is no corpus {0}: neither {0}.bin with {0}.idx nor a file or folder {0}; "
                  "`lockstep prepare` makes one",
                  path));
}

std::unique_ptr<TokenSource> open_one(const std::string& path, const CorpusOptions& options) {
  std::unique_ptr<TokenSource> source;
  if (const std::string prefix = megatron_prefix(path); !prefix.empty()) {
    source = open_megatron(prefix, options.vocab_size);
  } else if (!is_file(path)) {
    refuse_missing(path);
  } else if (is_llmc(path)) {
    source = open_llmc(path, options.vocab_size);
  } else if (path.ends_with(".bin")) {
    source = open_nanogpt(path, options.vocab_size);
  } else {
    throw UsageError(
        fmt::format("{} is no corpus: expected the prefix of a .bin and .idx pair, or a .bin file", path));
  }
  verify_tokens(*source, options.verified_tokens);
  return source;
}

// A folder and what names of files in it look like; of a path that names one corpus: nothing.
struct Pattern {
  fs::path folder;
  std::string names;
};

std::optional<Pattern> pattern_of(const std::string& path) {
  const fs::path place(path);
  std::error_code ignored;
  if (fs::is_directory(place, ignored)) return Pattern{place, "*.bin"};
  const std::string last = place.filename().string();
  if (last.find_first_of("*?") == std::string::npos) return std::nullopt;
  return Pattern{place.parent_path(), last};
}

std::vector<std::string> matches(const Pattern& pattern, std::error_code& failure) {
  const fs::path& folder = pattern.folder;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, failure)) {
    if (::fnmatch(pattern.names.c_str(), entry.path().filename().c_str(), FNM_PERIOD) != 0) continue;
    // A pair is found by its .bin; matching the index too would read it twice.
    if (entry.path().extension() == ".bin") found.push_back((folder / entry.path().filename()).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::unique_ptr<TokenSource> open_all(const Pattern& pattern, const CorpusOptions& options) {
  std::error_code failure;
  const std::vector<std::string> paths = matches(pattern, failure);
  if (paths.empty()) {
    throw UsageError(fmt::format("no .bin file matches {}{}", (pattern.folder / pattern.names).string(),
                                 failure ? ": " + failure.message() : ""));
  }
  std::vector<std::unique_ptr<TokenSource>> parts;
  parts.reserve(paths.size());
  for (const std::string& path : paths) parts.push_back(open_one(path, options));
  return std::make_unique<ConcatenatedSource>(std::move(parts));
}

// Itself, when it names one corpus.
std::vector<std::string> files_of(const std::string& path) {
  const auto pattern = pattern_of(path);
  std::error_code failure;
  return pattern ? matches(*pattern, failure) : std::vector<std::string>{path};
}

// What has this name behind a prefix of the file.
std::optional<std::string> beside(const std::string& file, const char* name) {
  for (const std::string& prefix : prefixes_of(file)) {
    if (is_file(prefix + name)) return prefix + name;
  }
  return std::nullopt;
}

}  // namespace

ConcatenatedSource::ConcatenatedSource(std::vector<std::unique_ptr<TokenSource>> parts)
    : parts_(std::move(parts)), begins_{0} {
  for (const auto& part : parts_) begins_.push_back(begins_.back() + part->size());
}

void ConcatenatedSource::copy(std::uint64_t begin, std::span<Token> out) const {
  LOCKSTEP_CHECK(begin <= size() && out.size() <= size() - begin, "tokens beyond the end of a corpus");
  auto part =
      static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1);
  while (!out.empty()) {
    const std::uint64_t count = std::min<std::uint64_t>(out.size(), begins_[part + 1] - begin);
    parts_[part]->copy(begin - begins_[part], out.first(count));
    out = out.subspan(count);
    begin += count;
    ++part;
  }
}

std::unique_ptr<TokenSource> open_corpus(const std::string& path, const CorpusOptions& options) {
  const auto pattern = pattern_of(path);
  return pattern ? open_all(*pattern, options) : open_one(path, options);
}

std::vector<TokenizerBeside> tokenizers_beside(const std::string& path) {
  std::vector<TokenizerBeside> found;
  for (const std::string& file : files_of(path)) {
    for (const char* name : {kJsonTokenizer, kPieceTokenizer}) {
      if (auto tokenizer = beside(file, name)) {
        found.push_back({.corpus = file, .file = std::move(*tokenizer)});
      }
    }
  }
  return found;
}

std::optional<std::string> tokenizer_beside(const std::string& path) {
  for (const std::string& file : files_of(path)) {
    if (auto tokenizer = beside(file, kJsonTokenizer)) return tokenizer;
  }
  return std::nullopt;
}

}  // namespace lockstep::data
