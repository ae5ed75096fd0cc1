// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

#include "lockstep/base/mapped_file.h"
#include "lockstep/data/corpus/token_source.h"
#include "lockstep/data/corpus/token_type.h"

namespace lockstep::data {

inline constexpr std::uint64_t kAnyVocabulary = std::uint64_t{1} << 32;

// Tokens that stand one after another in a mapped file: what is left of every corpus format once its header
// has been read.
class TokenArray : public TokenSource {
 public:
  // The tokens begin at `offset` bytes and go on to the end of the file, which must hold a whole number of
  // them (DataError otherwise). Every token read must be below `vocab_size`.
  TokenArray(MappedFile file, std::uint64_t offset, TokenType type, std::uint64_t vocab_size);

  std::uint64_t size() const override { return count_; }
  void copy(std::uint64_t begin, std::span<Token> out) const override;

 private:
  MappedFile file_;
  std::uint64_t offset_;
  TokenType type_;
  std::uint64_t vocab_size_;
  std::uint64_t count_;
};

// Reads the first `limit` tokens, so that a corpus of another vocabulary is refused before training begins.
void verify_tokens(const TokenSource& source,
                   std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

}  // namespace lockstep::data
