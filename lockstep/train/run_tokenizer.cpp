// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run_tokenizer.h"

#include <filesystem>

#include "lockstep/data/corpus/corpus.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<data::Tokenizer> load(const spec::Data& data) {
  if (!data.tokenizer.empty()) return data::load_tokenizer(data.tokenizer);
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
  if (file.filename() != "tokenizer.json") return {};
  return file.has_parent_path() ? file.parent_path().string() : ".";
}

}  // namespace

checkpoint::FolderTokenizer tokenizer_of(const spec::RunSpec& run) {
  checkpoint::FolderTokenizer found = {.tokenizer = load(run.data)};
  for (const std::string& folder : {run.checkpoint.initial_load_path, folder_of(run.data.tokenizer)}) {
    if (!folder.empty() && checkpoint::take_companions(folder, run.model.vocab_size, found)) break;
  }
  return found;
}

}  // namespace lockstep::train
