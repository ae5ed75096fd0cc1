// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/bpe_trainer.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

// The definition, word for word: counts every pair anew for every merge.
std::vector<Merge> plain_merges(const WordCounts& counts, std::size_t most) {
  std::vector<std::pair<std::vector<Token>, std::uint64_t>> words;
  for (const auto& [text, count] : counts) {
    words.emplace_back();
    for (const char byte : text) words.back().first.push_back(static_cast<unsigned char>(byte));
    words.back().second = count;
  }
  std::vector<Merge> merges;
  while (merges.size() < most) {
    std::map<std::pair<Token, Token>, std::uint64_t> pairs;
    for (const auto& [tokens, count] : words) {
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) pairs[{tokens[i], tokens[i + 1]}] += count;
    }
    auto best = pairs.end();
    for (auto it = pairs.begin(); it != pairs.end(); ++it) {
      if (it->second > 1 && (best == pairs.end() || it->second > best->second)) best = it;
    }
    if (best == pairs.end()) break;
    const Merge merge{best->first.first, best->first.second, static_cast<Token>(257 + merges.size())};
    merges.push_back(merge);
    for (auto& [tokens, count] : words) {
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i] != merge.left || tokens[i + 1] != merge.right) continue;
        tokens[i] = merge.result;
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
  return merges;
}

RC_GTEST_PROP(BpeTrainer, DoesWhatTheDefinitionSays, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("aab"))));
  WordCounts counts;
  for (const std::string& word : words) counts[word] += *rc::gen::inRange<std::uint64_t>(1, 4);
  const BpeModel model = train_bpe(counts, 257 + 30, kGpt2Pattern);
  RC_ASSERT(model.merges == plain_merges(counts, 30));
  RC_ASSERT(model.tokens.size() == 257 + model.merges.size());
  for (const Merge& merge : model.merges) {
    RC_ASSERT(model.tokens[merge.result] == model.tokens[merge.left] + model.tokens[merge.right]);
  }
}

TEST(BpeTrainer, CountsWordsOfThePattern) {
  WordCounts counts;
  count_words(SplitterChain({kGpt2Pattern}), "to be or not to be", counts);
  EXPECT_EQ(counts, (WordCounts{{"to", 1}, {" be", 2}, {" or", 1}, {" not", 1}, {" to", 1}}));
  EXPECT_THROW(count_words(SplitterChain({}), "a\xFF", counts), DataError);
}

TEST(BpeTrainer, RefusesVocabulariesOutOfRange) {
  EXPECT_THROW(train_bpe({}, 256, kGpt2Pattern), UsageError);
  EXPECT_THROW(train_bpe({}, kMaxVocabulary + 1, kGpt2Pattern), UsageError);
  EXPECT_TRUE(train_bpe({}, 257, kGpt2Pattern).merges.empty());
}

}  // namespace
}  // namespace lockstep::data
