// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/token_array.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::data {
namespace {

// Calls `visit` with a value of the C++ type that `type` names.
template <typename Visit>
void with_type(TokenType type, Visit&& visit) {
  switch (type) {
    case TokenType::uint8:
      return visit(std::uint8_t{});
    case TokenType::int8:
      return visit(std::int8_t{});
    case TokenType::int16:
      return visit(std::int16_t{});
    case TokenType::uint16:
      return visit(std::uint16_t{});
    case TokenType::int32:
      return visit(std::int32_t{});
    case TokenType::uint32:
      return visit(std::uint32_t{});
    case TokenType::int64:
      return visit(std::int64_t{});
  }
  LOCKSTEP_CHECK(false, "a token type without a width");
}

// Widens the tokens and gives the largest; a negative one counts as huge. Headers leave arrays unaligned,
// hence memcpy, which compiles to plain loads.
template <typename Stored>
std::uint64_t widen(const std::byte* from, std::span<Token> out) {
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
    const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    largest = std::max(largest, wide);
    out[i] = static_cast<Token>(wide);
  }
  return largest;
}

}  // namespace

TokenArray::TokenArray(MappedFile file, std::uint64_t offset, TokenType type, std::uint64_t vocab_size)
    : file_(std::move(file)), offset_(offset), type_(type), vocab_size_(vocab_size), count_(0) {
  if (file_.size() < offset) bad_file(file_.path(), file_.size(), "the file ends before its tokens begin");
  const std::uint64_t bytes = file_.size() - offset;
  if (bytes % size_of(type) != 0) {
    bad_file(file_.path(), file_.size(), fmt::format("the last token of {} bytes is cut off", size_of(type)));
  }
  count_ = bytes / size_of(type);
}

void TokenArray::copy(std::uint64_t begin, std::span<Token> out) const {
  LOCKSTEP_CHECK(begin <= count_ && out.size() <= count_ - begin, "tokens beyond the end of a corpus");
  file_.require_whole();
  with_type(type_, [&](auto example) {
    using Stored = decltype(example);
    const std::uint64_t place = offset_ + begin * sizeof(Stored);
    const std::byte* from = file_.bytes().data() + place;
    if (widen<Stored>(from, out) < vocab_size_) return;
    for (std::size_t i = 0; i < out.size(); ++i) {
      Stored value;
      std::memcpy(&value, from + i * sizeof(Stored), sizeof(Stored));
      if (static_cast<std::uint64_t>(value) < vocab_size_) continue;
      bad_file(file_.path(), place + i * sizeof(Stored),
               fmt::format("token {} is not below the vocabulary of {}", static_cast<std::int64_t>(value),
                           vocab_size_));
    }
  });
}

void verify_tokens(const TokenSource& source, std::uint64_t limit) {
  std::vector<Token> block(std::size_t{1} << 14);
  const std::uint64_t end = std::min(limit, source.size());
  for (std::uint64_t begin = 0; begin < end; begin += block.size()) {
    source.copy(begin, std::span(block).first(std::min<std::uint64_t>(block.size(), end - begin)));
  }
}

}  // namespace lockstep::data
