// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

inline constexpr char kEndOfText[] = "<|endoftext|>";
inline constexpr std::uint64_t kMaxVocabulary = std::uint64_t{1} << 24;
inline constexpr Token kNoToken = ~Token{0};

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
  bool normalized = false;  // with MetaspaceRules::normalizes: it is searched in text that has its mark
  bool operator==(const AddedToken&) const = default;
};

// What a vocabulary that was made from sentencepiece adds: the character U+2581 stands for a space in its
// file, and for the mark that is put before a text. Here both are spaces. A word begins as its characters,
// and one that has no token as its bytes.
struct MetaspaceRules {
  // Which parts of a text, as added tokens divide it, get the mark. What is empty gets none.
  enum class Prefix {
    none,
    always,
    where_missing,  // those that do not begin with a space
    first           // as before, but only the one that the text begins with
  };
  Prefix prefix = Prefix::always;
  // The mark is put before `normalized` added tokens are searched, and they have one too.
  bool normalizes = true;
  bool split = false;  // every space begins a word; otherwise a part of a text is one word
  bool strip = true;   // decoding drops a space that a text begins with
  std::map<char32_t, Token> characters = {};  // of one character
  std::array<Token, 256> bytes = {};
  bool operator==(const MetaspaceRules&) const = default;
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
  // Some: not a byte-level model; the three above are not used.
  std::optional<MetaspaceRules> metaspace = std::nullopt;
  bool operator==(const BpeModel&) const = default;
};

// One token for each byte (its value), then <|endoftext|>, and no merges.
BpeModel byte_model();

}  // namespace lockstep::data
