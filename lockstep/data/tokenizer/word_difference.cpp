// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/word_difference.h"

#include <algorithm>
#include <vector>

namespace lockstep::data {

std::optional<WordDifference> first_difference(const BpeModel& one, const BpeModel& other) {
  const std::size_t tokens = std::max(one.tokens.size(), other.tokens.size());
  const auto added_in = [&](const BpeModel& model) {
    std::vector<bool> is_added(tokens);
    for (const AddedToken& added : model.added) is_added[added.id] = true;
    return is_added;
  };
  const std::vector<bool> in_one = added_in(one), in_other = added_in(other);
  const auto word = [](const BpeModel& model, std::size_t id) {
    return id < model.tokens.size() ? model.tokens[id] : std::string();
  };
  for (std::size_t id = 0; id < tokens; ++id) {
    WordDifference difference = {static_cast<Token>(id), word(one, id), word(other, id)};
    if (difference.one == difference.other) continue;
    const bool is_like_added_in_one = in_one[id] || difference.one.empty();
    const bool is_like_added_in_other = in_other[id] || difference.other.empty();
    if (is_like_added_in_one && is_like_added_in_other) continue;
    return difference;
  }
  return std::nullopt;
}

}  // namespace lockstep::data
