// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/data/tokenizer/bpe_model.h"

namespace lockstep::data {

// Finds the merge of two tokens: a hash table with open addressing, at most half full.
class PairTable {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Found {
    std::uint32_t rank = kNone;  // place in the list of merges; kNone: the two do not merge
    Token result = 0;
  };

  // Later merges of the same pair are ignored.
  explicit PairTable(std::span<const Merge> merges)
      : slots_(std::bit_ceil(2 * merges.size() + 2)), shift_(64 - std::countr_zero(slots_.size())) {
    for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
      const std::uint64_t key = key_of(merges[rank].left, merges[rank].right);
      Slot& slot = slots_[place_of(key)];
      if (slot.found.rank == kNone) slot = {key, {rank, merges[rank].result}};
    }
  }

  Found find(Token left, Token right) const { return slots_[place_of(key_of(left, right))].found; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Found found;
  };

  static std::uint64_t key_of(Token left, Token right) { return std::uint64_t{left} << 32 | right; }

  // The slot of the key, or the free one where it would go.
  std::size_t place_of(std::uint64_t key) const {
    std::size_t at = key * 0x9E3779B97F4A7C15 >> shift_;
    while (slots_[at].found.rank != kNone && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace lockstep::data
