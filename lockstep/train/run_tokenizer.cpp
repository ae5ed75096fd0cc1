// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run_tokenizer.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

// Empty when there is none.
std::string path_of_tokenizer(const spec::Data& data) {
  if (!data.tokenizer.empty()) return data.tokenizer;
  if (data.train.empty()) return "";
  const std::string beside = data.train.front().path + ".tokenizer.json";
  return std::filesystem::exists(beside) ? beside : "";
}

}  // namespace

std::unique_ptr<data::Tokenizer> tokenizer_of(const spec::RunSpec& run) {
  const std::string path = path_of_tokenizer(run.data);
  if (path.empty()) return nullptr;
  std::unique_ptr<data::Tokenizer> tokenizer = data::load_tokenizer(path);
  if (tokenizer->vocab_size() > static_cast<std::uint64_t>(run.model.vocab_size)) {
    throw UsageError(
        fmt::format("the tokenizer {} has {} tokens, but model.vocab_size is {}: raise that, or let "
                    "data.tokenizer name the one that the corpus was made with",
                    path, tokenizer->vocab_size(), run.model.vocab_size));
  }
  return tokenizer;
}

}  // namespace lockstep::train
