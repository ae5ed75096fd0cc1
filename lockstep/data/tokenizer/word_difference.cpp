// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/word_difference.h"

#include <algorithm>
#include <vector>

namespace lockstep::data {

std::optional<WordDifference> first_difference(const BpeModel& one, const BpeModel& other) {
  const std::size_t tokens = std::max(one.tokens.size(), other.tokens.size());
  std::vector<bool> is_added(tokens);
  for (const BpeModel* model : {&one, &other}) {
    for (const AddedToken& added : model->added) is_added[added.id] = true;
  }
  const auto word = [](const BpeModel& model, std::size_t id) {
    return id < model.tokens.size() ? model.tokens[id] : std::string();
  };
  for (std::size_t id = 0; id < tokens; ++id) {
    if (is_added[id] || word(one, id) == word(other, id)) continue;
    return WordDifference{static_cast<Token>(id), word(one, id), word(other, id)};
  }
  return std::nullopt;
}

}  // namespace lockstep::data
