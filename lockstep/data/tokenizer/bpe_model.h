// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

inline constexpr char kEndOfText[] = "<|endoftext|>";
inline constexpr std::uint64_t kMaxVocabulary = std::uint64_t{1} << 24;

// Two neighbours that become one token.
struct Merge {
  Token left = 0;
  Token right = 0;
  Token result = 0;
  bool operator==(const Merge&) const = default;
};

// A text that is always a token of its own, whatever stands around it.
struct AddedToken {
  Token id = 0;
  std::string text;
  bool special = true;
  bool operator==(const AddedToken&) const = default;
};

// A byte-level byte-pair encoding: words are cut by `patterns` (splitter.h), a word begins as its bytes, and
// the earliest merge of the list that applies anywhere in it is done first, the leftmost place first, until
// none applies.
struct BpeModel {
  std::vector<std::string> tokens;  // the bytes of each token; empty where the numbering has a hole
  std::vector<Merge> merges;
  std::vector<AddedToken> added;
  std::vector<std::string> patterns;
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool compose = false;        // text is brought into Unicode's normal form C first
  bool operator==(const BpeModel&) const = default;
};

// One token for each byte (its value), then <|endoftext|>, and no merges.
BpeModel byte_model();

}  // namespace lockstep::data
