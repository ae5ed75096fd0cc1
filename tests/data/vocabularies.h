// SPDX-License-Identifier: Apache-2.0
//
// Small vocabularies, for tests of what compares them.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/splitter.h"

namespace lockstep::data::testing {

// The bytes, the end of a text (256), and from 257 on these words of two bytes.
inline BpeModel model_with(const std::vector<std::string>& words) {
  BpeModel model = byte_model();
  model.patterns = {kGpt2Pattern};
  for (const std::string& word : words) {
    const auto byte = [&](std::size_t at) {
      return static_cast<Token>(static_cast<unsigned char>(word[at]));
    };
    model.merges.push_back({byte(0), byte(1), static_cast<Token>(model.tokens.size())});
    model.tokens.push_back(word);
  }
  return model;
}

}  // namespace lockstep::data::testing
