// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data {
namespace {

using Pair = std::pair<Token, Token>;

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return (std::uint64_t{pair.first} << 32 | pair.second) * 0x9E3779B97F4A7C15 >> 16;
  }
};

struct Word {
  std::vector<Token> tokens;
  std::int64_t count = 0;
};

struct PairState {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // where the pair was seen; it may be gone from some
};

// A pair with the count it had when it was put on the heap; counts only fall without a new candidate being
// made.
struct Candidate {
  std::int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  explicit Trainer(const WordCounts& counts) : model_(byte_model()) {
    std::vector<std::pair<std::string_view, std::uint64_t>> sorted(counts.begin(), counts.end());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [text, count] : sorted) {
      Word word{{}, static_cast<std::int64_t>(count)};
      for (const char byte : text) word.tokens.push_back(static_cast<unsigned char>(byte));
      words_.push_back(std::move(word));
    }
    LOCKSTEP_CHECK(words_.size() < (std::uint64_t{1} << 32), "too many different words");
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      for (std::size_t at = 0; at + 1 < words_[i].tokens.size(); ++at) {
        add({words_[i].tokens[at], words_[i].tokens[at + 1]}, i, words_[i].count);
      }
    }
    for (const auto& [pair, state] : pairs_) heap_.push({state.count, pair});
  }

  BpeModel train(std::uint64_t vocab_size) {
    while (model_.tokens.size() < vocab_size && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const std::int64_t now = pairs_[best.pair].count;
      if (now != best.count) {
        if (now > 1) heap_.push({now, best.pair});
      } else if (now > 1) {
        merge(best.pair);
      }
    }
    return std::move(model_);
  }

 private:
  void add(Pair pair, std::uint32_t word, std::int64_t count) {
    PairState& state = pairs_[pair];
    state.count += count;
    if (state.words.empty() || state.words.back() != word) state.words.push_back(word);
  }

  void merge(Pair pair) {
    const auto result = static_cast<Token>(model_.tokens.size());
    model_.merges.push_back({pair.first, pair.second, result});
    model_.tokens.push_back(model_.tokens[pair.first] + model_.tokens[pair.second]);
    const std::vector<std::uint32_t> places = std::move(pairs_[pair].words);
    grown_.clear();
    for (const std::uint32_t word : places) merge_in(word, pair, result);
    pairs_.erase(pair);
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair& grown : grown_) heap_.push({pairs_[grown].count, grown});
  }

  // Every pair of the word is taken out and those of the merged word are put in, so that nothing depends on
  // how occurrences overlap. Only pairs with the new token are new to the word.
  void merge_in(std::uint32_t index, Pair pair, Token result) {
    std::vector<Token>& tokens = words_[index].tokens;
    const std::int64_t count = words_[index].count;
    merged_.clear();
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      const bool here = at + 1 < tokens.size() && tokens[at] == pair.first && tokens[at + 1] == pair.second;
      merged_.push_back(here ? result : tokens[at]);
      at += here;
    }
    if (merged_.size() == tokens.size()) return;
    for (std::size_t at = 0; at + 1 < tokens.size(); ++at)
      pairs_[{tokens[at], tokens[at + 1]}].count -= count;
    for (std::size_t at = 0; at + 1 < merged_.size(); ++at) {
      const Pair neighbours{merged_[at], merged_[at + 1]};
      if (neighbours.first == result || neighbours.second == result) {
        add(neighbours, index, count);
        grown_.push_back(neighbours);
      } else {
        pairs_[neighbours].count += count;
      }
    }
    std::swap(tokens, merged_);
  }

  BpeModel model_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairState, PairHash> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<Token> merged_;
  std::vector<Pair> grown_;
};

}  // namespace

void count_words(const Splitter& splitter, std::string_view text, WordCounts& counts) {
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid < text.size()) throw DataError(fmt::format("byte {} of the text is not valid UTF-8", valid));
  std::vector<std::size_t> ends;
  splitter.split(text, ends);
  std::size_t begin = 0;
  std::string word;
  for (const std::size_t end : ends) {
    word.assign(text.substr(begin, end - begin));
    ++counts[word];
    begin = end;
  }
}

BpeModel train_bpe(const WordCounts& counts, std::uint64_t vocab_size, const std::string& pattern) {
  const std::uint64_t smallest = byte_model().tokens.size();
  if (vocab_size < smallest || vocab_size > kMaxVocabulary) {
    throw UsageError(fmt::format("a vocabulary of {} cannot be trained: choose from {} (bytes and {}) to {}",
                                 vocab_size, smallest, kEndOfText, kMaxVocabulary));
  }
  BpeModel model = Trainer(counts).train(vocab_size);
  model.patterns = {pattern};
  return model;
}

}  // namespace lockstep::data
