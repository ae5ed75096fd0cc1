// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy
// as 1, 2, 3; SC 2011). A value depends on counter and key only, so anyone can compute any of them in any
// order.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

// 64 random bits of the counter (high, low) under a 64-bit key.
constexpr std::uint64_t philox64(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
  const PhiloxCounter value =
      philox({static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
              static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)},
             {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
  return value[0] | std::uint64_t{value[1]} << 32;
}

}  // namespace lockstep
