// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/word_difference.h"

#include <gtest/gtest.h>

#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/splitter.h"

#include "tests/data/metaspace_file.h"
#include "tests/data/vocabularies.h"

namespace lockstep::data {
namespace {

using testing::model_with;

TEST(WordDifference, IsTheFirstTokenThatStandsForSomethingElse) {
  EXPECT_EQ(first_difference(model_with({"he", "th"}), model_with({"he", "th"})), std::nullopt);
  EXPECT_EQ(first_difference(model_with({"he", "th"}), model_with({"he", "an"})),
            (WordDifference{258, "th", "an"}));
  EXPECT_EQ(first_difference(model_with({"he"}), model_with({"he", "th"})), (WordDifference{258, "", "th"}));
  EXPECT_EQ(first_difference(model_with({"he", "th"}), model_with({})), (WordDifference{257, "he", ""}));
}

TEST(WordDifference, IsThereBetweenBytesAndWhatIsMadeFromSentencepiece) {
  const BpeModel pieces = from_hugging_face(testing::metaspace_file().dump(), "t.json");
  EXPECT_EQ(first_difference(pieces, pieces), std::nullopt);
  EXPECT_NE(first_difference(pieces, byte_model()), std::nullopt);
}

// As programs write the same vocabulary that convert it.
TEST(WordDifference, IsNotInHowWordsAreMade) {
  BpeModel other = model_with({"he", "th"});
  std::swap(other.merges[0], other.merges[1]);
  other.patterns = {kLlama3Pattern};
  other.ignore_merges = true;
  EXPECT_EQ(first_difference(model_with({"he", "th"}), other), std::nullopt);
}

TEST(WordDifference, IsNotInAddedTokens) {
  const BpeModel plain = model_with({"he"});
  BpeModel added = plain;
  added.tokens[256] = added.added[0].text = "<eos>";
  added.tokens.insert(added.tokens.end(), {"<user>", "", "<pad>"});
  added.added.push_back({.id = 258, .text = "<user>"});
  added.added.push_back({.id = 260, .text = "<pad>"});
  EXPECT_EQ(first_difference(plain, added), std::nullopt);
  EXPECT_EQ(first_difference(added, plain), std::nullopt);
  EXPECT_EQ(first_difference(added, model_with({"th"})), (WordDifference{257, "he", "th"}));
}

// Who reads the one as the other finds something else than what was written.
TEST(WordDifference, IsInAnAddedTokenInThePlaceOfAWord) {
  const BpeModel words = model_with({"he", "th"});
  BpeModel added = model_with({"he"});
  added.tokens.emplace_back("<user>");
  added.added.push_back({.id = 258, .text = "<user>"});
  EXPECT_EQ(first_difference(words, added), (WordDifference{258, "th", "<user>"}));
  EXPECT_EQ(first_difference(added, words), (WordDifference{258, "<user>", "th"}));
  added.tokens.back() = added.added.back().text = "th";
  EXPECT_EQ(first_difference(added, words), std::nullopt) << "the same bytes";
}

}  // namespace
}  // namespace lockstep::data
