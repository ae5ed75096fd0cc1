// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/same_tokenizer.h"

#include <filesystem>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/is_file.h"
#include "lockstep/checkpoint/store/continuation.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/corpus/corpus_tokenizer.h"
#include "lockstep/data/tokenizer/file_content.h"
#include "lockstep/train/first_values.h"
#include "lockstep/train/run_tokenizer.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

using Owned = std::optional<data::OwnedTokenizer>;

// All that the run reads.
std::vector<std::string> corpora_of(const spec::RunSpec& run) {
  std::vector<std::string> corpora;
  for (const spec::Corpus& corpus : run.data.train) corpora.push_back(corpus.path);
  if (run.validation.freq > 0) {
    for (const spec::Corpus& corpus : run.data.validation) corpora.push_back(corpus.path);
  }
  return corpora;
}

Owned named_by(const spec::RunSpec& run, const checkpoint::FolderTokenizer& found) {
  if (run.data.tokenizer.empty()) return std::nullopt;
  return data::OwnedTokenizer{.name = run.data.tokenizer,
                              .owner = "data.tokenizer",
                              .content = found.tokenizer->serialized(),
                              .remedy = ", or leave data.tokenizer out"};
}

Owned of_folder(const std::string& folder) {
  for (const char* name : {data::kTokenizerFile, data::kPieceFile}) {
    const std::string file = (fs::path(folder) / name).string();
    if (!is_file(file)) continue;
    return data::OwnedTokenizer{.name = file, .owner = folder, .content = data::tokenizer_content(file)};
  }
  return std::nullopt;
}

// Where that of a checkpoint may be; some may be another by now.
std::vector<std::string> candidates_for(const checkpoint::Checkpoint& from) {
  const fs::path kept = kept_tokenizer_beside(from.path());
  std::vector<std::string> files = {kept / data::kTokenizerFile,
                                    kept.parent_path() / "model" / data::kTokenizerFile};
  const spec::Data saved = checkpoint::saved_run(from.manifest(), from.path()).data;
  files.push_back(saved.tokenizer);
  for (const spec::Corpus& corpus : saved.train) {
    if (auto beside = data::tokenizer_beside(corpus.path)) files.push_back(std::move(*beside));
  }
  return files;
}

// None when it cannot be had: the run that looks for it needs no such file.
std::optional<std::string> content_of(const std::string& file) {
  try {
    if (is_file(file)) return data::tokenizer_content(file);
  } catch (const Error&) {
  }
  return std::nullopt;
}

Owned of_checkpoint(const std::string& folder) {
  const checkpoint::Checkpoint from(folder);
  const std::string& digest = from.manifest().tokenizer_digest;
  if (digest.empty()) return std::nullopt;
  for (const std::string& file : candidates_for(from)) {
    const auto content = content_of(file);
    if (!content || digest_of(*content) != digest) continue;
    return data::OwnedTokenizer{.name = file, .owner = folder, .content = *content};
  }
  return std::nullopt;
}

}  // namespace

void require_one_tokenizer(const spec::RunSpec& run, const checkpoint::FolderTokenizer& found) {
  data::require_same_tokenizer(corpora_of(run), named_by(run, found));
}

void require_tokenizer_of_model(const std::string& folder, const std::vector<std::string>& corpora) {
  if (const Owned expected = of_folder(folder)) data::require_same_tokenizer(corpora, expected);
}

void require_tokenizer_of_first_values(const spec::RunSpec& run, const checkpoint::FolderTokenizer& found) {
  const std::string& path = run.checkpoint.initial_load_path;
  if (path.empty()) return;
  const std::string folder = first_values_folder(path);
  const Owned expected = checkpoint::holds_checkpoints(path) ? of_checkpoint(folder) : of_folder(folder);
  if (!expected) return;
  data::require_same_tokenizer(corpora_of(run), expected);
  const Owned named = named_by(run, found);
  const auto difference = named ? data::difference_between(*named, *expected) : std::nullopt;
  if (!difference) return;
  throw UsageError(
      fmt::format("data.tokenizer is another tokenizer than that of {}, which the run begins with: {}; let "
                  "data.tokenizer name {}, or leave it out",
                  folder, *difference, expected->name));
}

}  // namespace lockstep::train
