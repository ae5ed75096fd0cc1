// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/data/tokenizer/bpe_model.h"

namespace lockstep::data {

// The first token that stands for other bytes in one vocabulary than in another.
struct WordDifference {
  Token token = 0;
  std::string one, other;  // empty: that one does not have it
  bool operator==(const WordDifference&) const = default;
};

// None when each can read the text that the other has written. Of the same vocabulary programs write the
// merges and patterns in different ways, and give it more added tokens, or rename these: none of that is a
// difference. An added token in the place of an ordinary word is one.
std::optional<WordDifference> first_difference(const BpeModel& one, const BpeModel& other);

}  // namespace lockstep::data
