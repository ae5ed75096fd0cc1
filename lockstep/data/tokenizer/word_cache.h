// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

// The tokens of words that came before. Words with the same hash replace each other, so the memory is fixed;
// an entry fills one cache line, and longer words are not kept.
class WordCache {
 public:
  explicit WordCache(std::size_t entries_log2 = 15)
      : entries_(std::size_t{1} << entries_log2), shift_(64 - entries_log2) {}

  // Appends the tokens of the word and returns true when they are known.
  bool append(std::string_view word, std::vector<Token>& tokens) const {
    const Entry& entry = entries_[place_of(word)];
    if (word.size() > kMaxBytes || entry.bytes != word.size() ||
        std::memcmp(entry.word.data(), word.data(), word.size()) != 0) {
      return false;
    }
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.begin() + entry.count);
    return true;
  }

  void keep(std::string_view word, std::span<const Token> tokens) {
    if (word.size() > kMaxBytes || tokens.size() > kMaxTokens) return;
    Entry& entry = entries_[place_of(word)];
    entry.bytes = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(tokens.size());
    std::memcpy(entry.word.data(), word.data(), word.size());
    std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  }

 private:
  static constexpr std::size_t kMaxBytes = 30;
  static constexpr std::size_t kMaxTokens = 8;

  struct alignas(64) Entry {
    std::uint8_t bytes = 0;  // 0: free
    std::uint8_t count = 0;
    std::array<char, kMaxBytes> word;
    std::array<Token, kMaxTokens> tokens;
  };
  static_assert(sizeof(Entry) == 64);

  // Multiplies in eight bytes at a time: a few nanoseconds for a word of text.
  std::size_t place_of(std::string_view word) const {
    std::uint64_t hash = word.size();
    for (std::size_t at = 0; at < word.size(); at += 8) {
      std::uint64_t eight = 0;
      std::memcpy(&eight, word.data() + at, std::min<std::size_t>(8, word.size() - at));
      hash = (hash ^ eight) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    }
    return hash * 0xD6E8FEB86659FD93 >> shift_;
  }

  std::vector<Entry> entries_;
  std::size_t shift_;
};

}  // namespace lockstep::data
