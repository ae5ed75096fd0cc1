// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/tokenizer/pair_table.h"

namespace lockstep::data {

// Merges the tokens of one word in place, by the rule of BpeModel.
class Merger {
 public:
  explicit Merger(const PairTable& table) : table_(&table) {}  // the table must outlive this object

  void merge(std::vector<Token>& word);

  // Quadratic, and fastest for the short words that text is made of.
  void merge_short(std::vector<Token>& word);
  // n log n: for words without end, such as a page of one letter.
  void merge_long(std::vector<Token>& word);

 private:
  // A merge that applied when it was put on the heap; `at` is the left token.
  struct Candidate {
    std::uint32_t rank;
    std::uint32_t at;
    Token left, right;
    bool operator<(
        const Candidate& other) const {  // the heap gives the largest: earliest merge, leftmost place
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  void offer(const std::vector<Token>& word, std::uint32_t at);

  const PairTable* table_;
  std::vector<PairTable::Found> pairs_;
  std::vector<Candidate> heap_;
  std::vector<std::uint32_t> next_, previous_;
};

}  // namespace lockstep::data
