// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/hugging_face.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  data::BpeModel model;
  const std::string_view json = input.rest();
  if (!fuzz::accepts<DataError, UsageError>([&] { model = data::from_hugging_face(json, "t.json"); }))
    return 0;
  std::unique_ptr<data::Tokenizer> tokenizer;
  if (!fuzz::accepts<DataError, UsageError>(
          [&] { tokenizer = data::make_tokenizer(model, std::string(json)); })) {
    return 0;
  }
  const std::string text = "In the beginning, 1611 \u6f22 \u00e9\n\n  <|endoftext|>'s";
  std::vector<data::Token> tokens;
  if (!fuzz::accepts<DataError>([&] { tokenizer->encoder()->encode(text, tokens); })) return 0;
  const std::string decoded = tokenizer->decode(tokens);
  fuzz::require(model.metaspace || decoded == text, "the round trip is the identity");
  return 0;
}
