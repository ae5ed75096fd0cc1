// SPDX-License-Identifier: Apache-2.0
//
// Tokens and their bytes, for tests of data.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data::testing {

// The bytes of numbers, little-endian as the machine's.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::vector<Token> all_tokens(const TokenSource& source) {
  std::vector<Token> tokens(source.size());
  source.copy(0, tokens);
  return tokens;
}

}  // namespace lockstep::data::testing
