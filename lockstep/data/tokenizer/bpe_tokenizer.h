// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>

#include "lockstep/data/tokenizer/added_tokens.h"
#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/pair_table.h"
#include "lockstep/data/tokenizer/splitter.h"
#include "lockstep/data/tokenizer/tokenizer.h"
#include "lockstep/data/tokenizer/vocabulary.h"

namespace lockstep::data {

class BpeTokenizer : public Tokenizer {
 public:
  // `serialized` is the file that the model was read from; it is written by to_hugging_face() when empty.
  // DataError when a byte has no token, for then some text could not be encoded. Merges must name tokens of
  // the model.
  explicit BpeTokenizer(BpeModel model, std::string serialized = {});

  std::uint64_t vocab_size() const override { return model_.tokens.size(); }
  bool has(Token token) const override { return has_token(model_, token); }
  std::unique_ptr<Encoder> encoder() const override;
  void decode(std::span<const Token> tokens, std::string& text) const override;
  std::optional<Token> find(std::string_view token) const override;
  std::optional<Token> end_of_document() const override;
  std::string serialized() const override;

  const BpeModel& model() const { return model_; }

  using Tokenizer::decode;

 private:
  class WordEncoder;

  BpeModel model_;
  std::string serialized_;
  std::array<Token, 256> byte_tokens_{};
  std::unordered_map<std::string_view, Token> by_bytes_;  // views into model_
  PairTable pairs_;
  AddedTokenFinder added_;
  SplitterChain splitter_;
};

}  // namespace lockstep::data
