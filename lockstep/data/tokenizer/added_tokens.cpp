// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/added_tokens.h"

#include <algorithm>

namespace lockstep::data {

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added) {
    if (token.text.empty()) continue;
    auto& same_begin = by_first_byte_[static_cast<unsigned char>(token.text[0])];
    if (same_begin.empty()) first_bytes_ += token.text[0];
    same_begin.push_back(token);
  }
  for (auto& tokens : by_first_byte_) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  }
}

// Usually all begin with '<', and one byte is searched much faster than a set.
std::string_view::size_type AddedTokenFinder::next_first_byte(std::string_view text, std::size_t from) const {
  return first_bytes_.size() == 1 ? text.find(first_bytes_[0], from) : text.find_first_of(first_bytes_, from);
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::find(std::string_view text, std::size_t from) const {
  for (std::size_t at = next_first_byte(text, from); at != std::string_view::npos;
       at = next_first_byte(text, at + 1)) {
    for (const AddedToken& token : by_first_byte_[static_cast<unsigned char>(text[at])]) {
      if (text.substr(at).starts_with(token.text)) return Match{at, at + token.text.size(), token.id};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::data
