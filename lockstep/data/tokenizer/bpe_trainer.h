// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/splitter.h"

namespace lockstep::data {

// How often each word of a corpus occurs.
using WordCounts = std::unordered_map<std::string, std::uint64_t>;

// Adds the words of `text`; DataError when it is not valid UTF-8.
void count_words(const Splitter& splitter, std::string_view text, WordCounts& counts);

// Learns merges: again and again the pair of neighbours that occurs most often becomes a token, of equal
// pairs the one with the smaller tokens, so that equal counts give equal models. Token b < 256 is the byte b,
// 256 is
// <|endoftext|>, the merges follow. The model is smaller than `vocab_size` when no pair occurs twice any
// more. UsageError when `vocab_size` is below 257 or beyond kMaxVocabulary.
BpeModel train_bpe(const WordCounts& counts, std::uint64_t vocab_size, const std::string& pattern);

}  // namespace lockstep::data
