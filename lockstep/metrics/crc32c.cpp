// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/crc32c.h"

#include <array>
#include <bit>

namespace lockstep::metrics {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // lowest bit first
constexpr std::uint32_t kMaskDelta = 0xa282ead8;

// What each value of a byte adds to the checksum.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    }
    table[byte] = remainder;
  }
  return table;
}

constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t remainder = ~std::uint32_t{0};
  for (const char c : bytes) {
    remainder = (remainder >> 8) ^ kTable[(remainder ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~remainder;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + kMaskDelta;
}

}  // namespace lockstep::metrics
