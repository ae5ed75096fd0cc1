// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <unordered_map>

#include "lockstep/data/tokenizer/added_tokens.h"
#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/pair_table.h"
#include "lockstep/data/tokenizer/tokenizer.h"
#include "lockstep/data/tokenizer/vocabulary.h"

namespace lockstep::data {

// A byte-pair encoding that was made from sentencepiece, by the rules of MetaspaceRules. Gives the tokens
// that Hugging Face's tokenizers give for the same file, and decodes them as these do, except that bytes
// which are not valid UTF-8 come out as they are.
class MetaspaceTokenizer : public Tokenizer {
 public:
  // `model` has MetaspaceRules with a token for every byte; `serialized` is the file that it was read from.
  MetaspaceTokenizer(BpeModel model, std::string serialized);

  std::uint64_t vocab_size() const override { return model_.tokens.size(); }
  bool has(Token token) const override { return has_token(model_, token); }
  std::unique_ptr<Encoder> encoder() const override;
  void decode(std::span<const Token> tokens, std::string& text) const override;
  std::optional<Token> find(std::string_view token) const override;
  std::optional<Token> end_of_document() const override;
  std::string serialized() const override { return serialized_; }

  using Tokenizer::decode;

 private:
  class WordEncoder;

  const MetaspaceRules& rules() const { return *model_.metaspace; }

  BpeModel model_;
  std::string serialized_;
  std::array<Token, 128> ascii_{};
  std::unordered_map<char32_t, Token> others_;  // characters beyond ASCII
  PairTable pairs_;
  AddedTokenFinder plain_, normalized_;  // added tokens, by where they are searched
  bool words_meet_;                      // some merge joins the end of a word with the space behind it
};

}  // namespace lockstep::data
