// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/data/tokenizer/bpe_model.h"

namespace lockstep::data {

// Finds added tokens in text: the leftmost, and of those the longest.
class AddedTokenFinder {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    Token id = 0;
  };

  explicit AddedTokenFinder(const std::vector<AddedToken>& added);

  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // longest first
  std::string_view::size_type next_first_byte(std::string_view text, std::size_t from) const;
  std::string first_bytes_;
};

}  // namespace lockstep::data
