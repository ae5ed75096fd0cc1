// SPDX-License-Identifier: Apache-2.0
//
// Which tokenizer has made a corpus, as far as files beside it tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::data {

// A tokenizer, and whose it is.
struct OwnedTokenizer {
  std::string name;         // as load_tokenizer() takes it, or the file of a sentencepiece model
  std::string owner;        // as a sentence calls it
  std::string content;      // Tokenizer::serialized(), or that of the file
  std::string remedy = {};  // the end of a sentence about others: what else can be done
};

// UsageError naming the first corpus that was made with another tokenizer than what is expected, or, where
// nothing is, than a corpus before it. Tokenizers are the same when they have the same words
// (word_difference.h); sentencepiece models, which are only compared with each other, when their bytes are. A
// corpus with nothing beside it, or with a tokenizer of a kind that is not supported, fits to everything.
// DataError when a tokenizer that has to be looked into is corrupt.
void require_same_tokenizer(const std::vector<std::string>& corpora,
                            const std::optional<OwnedTokenizer>& expected);

// "token 260 is 'he' in A, but 'th' in B"; none when the words are the same, or cannot be compared as above.
std::optional<std::string> difference_between(const OwnedTokenizer& one, const OwnedTokenizer& other);

}  // namespace lockstep::data
