// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/run_tokenizer.h"

#include "lockstep/data/corpus/corpus.h"

namespace lockstep::train {

std::unique_ptr<data::Tokenizer> tokenizer_of(const spec::Data& data) {
  if (!data.tokenizer.empty()) return data::load_tokenizer(data.tokenizer);
  for (const spec::Corpus& corpus : data.train) {
    if (const auto beside = data::tokenizer_beside(corpus.path)) return data::load_tokenizer(*beside);
  }
  return nullptr;
}

}  // namespace lockstep::train
