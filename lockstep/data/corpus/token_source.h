// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

using Token = std::uint32_t;

// A stream of tokens that can be read at any place. Safe to use from several threads.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::uint64_t size() const = 0;

  // Fills `out` with the tokens [begin, begin + out.size()), which must lie within size(). DataError naming
  // file and offset when a token is not below the vocabulary.
  virtual void copy(std::uint64_t begin, std::span<Token> out) const = 0;
};

}  // namespace lockstep::data
