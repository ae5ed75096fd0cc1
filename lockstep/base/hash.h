// SPDX-License-Identifier: Apache-2.0
//
// XXH3 with 128 bits: finds what a disk, a cable or a bug has changed, not what somebody has forged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/bytes.h"

namespace lockstep {

struct Hash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Hash&) const = default;
};

// 32 hexadecimal digits, lower case.
std::string to_text(const Hash& hash);
// None when the text is anything else.
std::optional<Hash> parse_hash(std::string_view text);

Hash hash_of(ConstBytes bytes);

// The hash of bytes that come piece by piece; how they are cut does not matter.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(ConstBytes bytes);
  Hash value() const;  // of all so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
