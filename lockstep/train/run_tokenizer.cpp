// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run_tokenizer.h"

#include <filesystem>

namespace lockstep::train {

std::unique_ptr<data::Tokenizer> tokenizer_of(const spec::Data& data) {
  if (!data.tokenizer.empty()) return data::load_tokenizer(data.tokenizer);
  if (data.train.empty()) return nullptr;
  const std::string beside = data.train.front().path + ".tokenizer.json";
  return std::filesystem::exists(beside) ? data::load_tokenizer(beside) : nullptr;
}

}  // namespace lockstep::train
