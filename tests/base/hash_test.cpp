// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/hash.h"

#include <string>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Hash hash_of_text(std::string_view text) {
  return hash_of(std::as_bytes(std::span(text)));
}

// As `xxhsum -H128` prints them.
TEST(Hash, IsXxh3With128Bits) {
  EXPECT_EQ(to_text(hash_of_text("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_text(hash_of_text("a")), "a96faf705af16834e6c632b61e964e1f");
}

TEST(Hash, DoesNotDependOnHowBytesAreCut) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * i);
  const ConstBytes bytes = std::as_bytes(std::span(text));
  for (const std::size_t step : {1, 7, 64, 255, 256, 257, 1024, 4999, 5000}) {
    Hasher hasher;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      hasher.add(bytes.subspan(at, std::min(step, bytes.size() - at)));
    }
    hasher.add({});
    EXPECT_EQ(hasher.value(), hash_of(bytes)) << step;
    EXPECT_EQ(hasher.value(), hasher.value());
  }
  EXPECT_EQ(Hasher().value(), hash_of({}));
}

TEST(Hash, IsReadFromItsText) {
  const Hash hash = {.high = 0x0123456789abcdef, .low = 7};
  EXPECT_EQ(to_text(hash), "0123456789abcdef0000000000000007");
  EXPECT_EQ(parse_hash(to_text(hash)), hash);
  for (const char* text : {"", "0123456789abcdef000000000000000", "0123456789abcdef00000000000000077",
                           "0123456789ABCDEF0000000000000007", "0123456789abcdeg0000000000000007",
                           " 123456789abcdef0000000000000007", "-123456789abcdef0000000000000007",
                           "0x23456789abcdef0000000000000007"}) {
    EXPECT_EQ(parse_hash(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lockstep
