// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/compose.h"
#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/merger.h"
#include "lockstep/data/tokenizer/utf8.h"
#include "lockstep/data/tokenizer/vocabulary.h"
#include "lockstep/data/tokenizer/word_cache.h"

namespace lockstep::data {

class BpeTokenizer::WordEncoder : public Encoder {
 public:
  explicit WordEncoder(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer), merger_(tokenizer.pairs_) {}

  void encode(std::string_view text, std::vector<Token>& tokens) override {
    require_valid_utf8(text);
    if (tokenizer_.model_.compose && !is_ascii(text)) {
      composed_ = compose(text);
      text = composed_;
    }
    std::size_t at = 0;
    while (const auto match = tokenizer_.added_.find(text, at)) {
      encode_words(text.substr(at, match->begin - at), tokens);
      tokens.push_back(match->id);
      at = match->end;
    }
    encode_words(text.substr(at), tokens);
  }

 private:
  void encode_words(std::string_view text, std::vector<Token>& tokens) {
    tokenizer_.splitter_.split(text, ends_);
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      encode_word(text.substr(begin, end - begin), tokens);
      begin = end;
    }
  }

  void encode_word(std::string_view word, std::vector<Token>& tokens) {
    if (cache_.append(word, tokens)) return;
    word_.clear();
    if (const auto whole = whole_token(word); whole != kNoToken) {
      word_.push_back(whole);
    } else {
      for (const char byte : word) word_.push_back(tokenizer_.byte_tokens_[static_cast<unsigned char>(byte)]);
      merger_.merge(word_);
    }
    cache_.keep(word, word_);
    tokens.insert(tokens.end(), word_.begin(), word_.end());
  }

  Token whole_token(std::string_view word) const {
    if (!tokenizer_.model_.ignore_merges) return kNoToken;
    const auto found = tokenizer_.by_bytes_.find(word);
    return found == tokenizer_.by_bytes_.end() ? kNoToken : found->second;
  }

  const BpeTokenizer& tokenizer_;
  Merger merger_;
  WordCache cache_;
  std::string composed_;
  std::vector<std::size_t> ends_;
  std::vector<Token> word_;
};

BpeTokenizer::BpeTokenizer(BpeModel model, std::string serialized)
    : model_(std::move(model)),
      serialized_(std::move(serialized)),
      pairs_(model_.merges),
      added_(model_.added),
      splitter_(model_.patterns) {
  std::vector<bool> is_added(model_.tokens.size());
  for (const AddedToken& token : model_.added) is_added[token.id] = true;
  byte_tokens_.fill(kNoToken);
  for (Token id = 0; id < model_.tokens.size(); ++id) {
    const std::string& bytes = model_.tokens[id];
    if (bytes.empty() || is_added[id]) continue;
    by_bytes_.emplace(bytes, id);
    if (bytes.size() == 1) byte_tokens_[static_cast<unsigned char>(bytes[0])] = id;
  }
  const auto missing = std::find(byte_tokens_.begin(), byte_tokens_.end(), kNoToken);
  if (missing != byte_tokens_.end()) {
    throw DataError(
        fmt::format("the vocabulary has no token for the byte {}; byte-level vocabularies have all 256",
                    missing - byte_tokens_.begin()));
  }
}

std::unique_ptr<Encoder> BpeTokenizer::encoder() const {
  return std::make_unique<WordEncoder>(*this);
}

void BpeTokenizer::decode(std::span<const Token> tokens, std::string& text) const {
  for (const Token token : tokens) text += bytes_of(model_, token);
}

std::optional<Token> BpeTokenizer::find(std::string_view token) const {
  for (const AddedToken& added : model_.added) {
    if (added.text == token) return added.id;
  }
  const auto found = by_bytes_.find(token);
  return found == by_bytes_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Token> BpeTokenizer::end_of_document() const {
  return find_end_of_document(*this);
}

std::string BpeTokenizer::serialized() const {
  return serialized_.empty() ? to_hugging_face(model_) : serialized_;
}

BpeModel byte_model() {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  model.added.push_back({256, kEndOfText, true});
  model.tokens.emplace_back(kEndOfText);
  return model;
}

}  // namespace lockstep::data
