// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/hash.h"

#include <charconv>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kDigits = 16;  // of one half

Hash from(const XXH128_hash_t& hash) {
  return {.high = hash.high64, .low = hash.low64};
}

std::optional<std::uint64_t> parse_half(std::string_view text) {
  if (text.find_first_not_of("0123456789abcdef") != text.npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace

struct Hasher::State {
  XXH3_state_t xxh;
};

std::string to_text(const Hash& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

std::optional<Hash> parse_hash(std::string_view text) {
  if (text.size() != 2 * kDigits) return std::nullopt;
  const auto high = parse_half(text.substr(0, kDigits));
  const auto low = parse_half(text.substr(kDigits));
  if (!high || !low) return std::nullopt;
  return Hash{.high = *high, .low = *low};
}

Hash hash_of(ConstBytes bytes) {
  return from(XXH3_128bits(bytes.data(), bytes.size()));
}

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}

Hasher::~Hasher() = default;

void Hasher::add(ConstBytes bytes) {
  LOCKSTEP_CHECK(XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

Hash Hasher::value() const {
  return from(XXH3_128bits_digest(&state_->xxh));
}

}  // namespace lockstep
