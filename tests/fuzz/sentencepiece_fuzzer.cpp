// SPDX-License-Identifier: Apache-2.0
//
// A sentencepiece model. The library that reads it is not ours: what counts is that nothing it does with a
// hostile one leaves us as anything but a refusal.
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/data/sentencepiece/tokenizer.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const fuzz::MemoryFile file(input.rest());
  fuzz::accepts<DataError>([&] {
    const std::unique_ptr<data::Tokenizer> tokenizer = data::load_sentencepiece(file.path());
    std::vector<data::Token> tokens;
    tokenizer->encoder()->encode("ab ba \u6f22 \n", tokens);
    for (const data::Token token : tokens) {
      fuzz::require(token < tokenizer->vocab_size(), "tokens are of the vocabulary");
    }
    tokenizer->decode(tokens);
    tokenizer->find("<s>");
    if (const auto end = tokenizer->end_of_document()) {
      fuzz::require(*end < tokenizer->vocab_size(), "so is the end of a document");
    }
  });
  return 0;
}
