// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/merger.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr std::size_t kShortWord = 64;
constexpr Token kGone = ~Token{0};
constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

}  // namespace

void Merger::merge(std::vector<Token>& word) {
  if (word.size() <= kShortWord) {
    merge_short(word);
  } else {
    merge_long(word);
  }
}

void Merger::merge_short(std::vector<Token>& word) {
  if (word.size() < 2) return;
  pairs_.resize(word.size() - 1);  // pairs_[i] is the merge of word[i] and word[i + 1]
  for (std::size_t i = 0; i + 1 < word.size(); ++i) pairs_[i] = table_->find(word[i], word[i + 1]);
  while (!pairs_.empty()) {
    const auto best = std::min_element(pairs_.begin(), pairs_.end(),
                                       [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (best->rank == PairTable::kNone) return;
    const auto at = static_cast<std::size_t>(best - pairs_.begin());
    word[at] = best->result;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    pairs_.erase(best);
    if (at > 0) pairs_[at - 1] = table_->find(word[at - 1], word[at]);
    if (at < pairs_.size()) pairs_[at] = table_->find(word[at], word[at + 1]);
  }
}

void Merger::offer(const std::vector<Token>& word, std::uint32_t at) {
  const std::uint32_t right = next_[at];
  if (right == kNowhere) return;
  const PairTable::Found found = table_->find(word[at], word[right]);
  if (found.rank == PairTable::kNone) return;
  heap_.push_back({found.rank, at, word[at], word[right]});
  std::push_heap(heap_.begin(), heap_.end());
}

void Merger::merge_long(std::vector<Token>& word) {
  LOCKSTEP_CHECK(word.size() < kNowhere, "a word of 4 GiB");
  const auto size = static_cast<std::uint32_t>(word.size());
  next_.resize(size);
  previous_.resize(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    next_[i] = i + 1 < size ? i + 1 : kNowhere;
    previous_[i] = i > 0 ? i - 1 : kNowhere;
  }
  heap_.clear();
  for (std::uint32_t i = 0; i < size; ++i) offer(word, i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    const std::uint32_t right = next_[best.at];
    // Something else may have been merged here since.
    if (word[best.at] != best.left || right == kNowhere || word[right] != best.right) continue;
    word[best.at] = table_->find(best.left, best.right).result;
    word[right] = kGone;
    next_[best.at] = next_[right];
    if (next_[right] != kNowhere) previous_[next_[right]] = best.at;
    offer(word, best.at);
    if (previous_[best.at] != kNowhere) offer(word, previous_[best.at]);
  }
  std::erase(word, kGone);
}

}  // namespace lockstep::data
