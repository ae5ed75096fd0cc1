// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run_tokenizer.h"

#include <filesystem>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/data/corpus/corpus.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<data::Tokenizer> load_named(const std::string& name) {
  std::error_code ignored;
  if (name != "bytes" && fs::status(name, ignored).type() == fs::file_type::not_found) {
    throw UsageError(fmt::format(
        "data.tokenizer names {}, which is not there: give a tokenizer.json, a folder with one or "
        "'bytes', or leave it out",
        name));
  }
  return data::load_tokenizer(name);
}

std::unique_ptr<data::Tokenizer> load(const spec::Data& data) {
  if (!data.tokenizer.empty()) return load_named(data.tokenizer);
  for (const spec::Corpus& corpus : data.train) {
    if (const auto beside = data::tokenizer_beside(corpus.path)) return data::load_tokenizer(*beside);
  }
  return nullptr;
}

// Empty when the name is not that of a tokenizer in such a folder.
std::string folder_of(const std::string& tokenizer) {
  std::error_code ignored;
  if (fs::is_directory(tokenizer, ignored)) return tokenizer;
  const fs::path file(tokenizer);
  if (file.filename() != data::kTokenizerFile) return {};
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

}  // namespace

std::string kept_tokenizer(const std::string& run_folder) {
  return (fs::path(run_folder) / "kept_tokenizer").string();
}

std::string kept_tokenizer_beside(const std::string& checkpoint) {
  return kept_tokenizer(fs::canonical(checkpoint).parent_path().parent_path());
}

checkpoint::FolderTokenizer tokenizer_of(const spec::RunSpec& run, const std::string& kept) {
  using checkpoint::WhenCorrupt;
  checkpoint::FolderTokenizer found = {.tokenizer = load(run.data)};
  const auto takes = [&](const std::string& folder, WhenCorrupt when_corrupt) {
    return !folder.empty() && checkpoint::take_companions(folder, run.model.vocab_size, found, when_corrupt);
  };
  const bool is_kept = !kept.empty() && checkpoint::has_kept_companions(kept);
  if (is_kept && takes(kept, WhenCorrupt::refuse)) return found;
  if (takes(run.checkpoint.initial_load_path, WhenCorrupt::refuse)) return found;
  takes(folder_of(run.data.tokenizer), WhenCorrupt::ignore);
  return found;
}

std::string digest_of(const checkpoint::FolderTokenizer& found) {
  return found.tokenizer ? digest_of(found.tokenizer->serialized()) : "";
}

std::string digest_of(const std::string& content) {
  return to_text(hash_of(std::as_bytes(std::span(content))));
}

}  // namespace lockstep::train
