// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

// What tokenizers are called in a folder that has one.
inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr const char* kPieceFile = "tokenizer.model";  // of sentencepiece

// Turns text into tokens; holds caches, so each thread has its own. Must not outlive its tokenizer.
class Encoder {
 public:
  virtual ~Encoder() = default;

  // Appends the tokens of `text`, which must be valid UTF-8: DataError naming the first bad byte otherwise.
  // No token is added that the text does not hold, except for the mark of MetaspaceRules.
  virtual void encode(std::string_view text, std::vector<Token>& tokens) = 0;
  // The same for text that goes on in a document: what some tokenizers put before a text is not put here.
  virtual void encode_more(std::string_view text, std::vector<Token>& tokens) { encode(text, tokens); }
};

// Immutable, and safe to use from several threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::uint64_t vocab_size() const = 0;  // all tokens are below
  // Whether decode() takes it: a numbering may have holes.
  virtual bool has(Token token) const = 0;
  virtual std::unique_ptr<Encoder> encoder() const = 0;
  // Appends the bytes of the tokens; those of a single token need not be valid UTF-8. The mark that some
  // tokenizers put before a text is dropped only when `text` is empty. DataError for a token that the
  // vocabulary does not have.
  virtual void decode(std::span<const Token> tokens, std::string& text) const = 0;
  virtual std::optional<Token> find(std::string_view token) const = 0;
  // What stands between documents, such as <|endoftext|>; none when the vocabulary has nothing of that kind.
  virtual std::optional<Token> end_of_document() const = 0;
  // The content of a file that load_tokenizer() reads.
  virtual std::string serialized() const = 0;

  std::vector<Token> encode(std::string_view text) const;
  std::string decode(std::span<const Token> tokens) const;
};

// "bytes": one token for each byte, and <|endoftext|>. Otherwise a file: tokenizer.json of Hugging Face (see
// hugging_face.h for what of it is understood) or a folder that has one; sentencepiece/tokenizer.h has the
// other kind. UsageError when there is no such file or it needs what is not supported, DataError when it is
// corrupt.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name);

}  // namespace lockstep::data
