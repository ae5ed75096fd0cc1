// SPDX-License-Identifier: Apache-2.0
//
// bf16 and fp16 as bits, one value at a time. Widening is exact; narrowing rounds to nearest even, keeps
// denormals and turns every NaN into the one quiet NaN below.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::kernels {

inline constexpr std::uint16_t kNanBf16 = 0x7FC0;
inline constexpr std::uint16_t kNanFp16 = 0x7E00;
inline constexpr std::uint32_t kNanFp32 = 0x7FC00000;
inline constexpr std::uint64_t kNanFp64 = 0x7FF8000000000000;

constexpr float float_of_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t bf16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return kNanBf16;
  const std::uint32_t tie_to_even = (bits >> 16) & 1;
  return static_cast<std::uint16_t>((bits + 0x7FFF + tie_to_even) >> 16);
}

constexpr float float_of_fp16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

constexpr std::uint16_t fp16_of_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return kNanFp16;
  if (magnitude >= 0x47800000) return static_cast<std::uint16_t>(sign | 0x7C00);
  // How many low bits of the 24-bit significand do not fit: 13, and one more for each power of two below the
  // smallest normal fp16.
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
  if (dropped > 24) return static_cast<std::uint16_t>(sign);
  const std::uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
  const std::uint32_t kept = significand >> dropped;
  const std::uint32_t remainder = significand & ((1U << dropped) - 1);
  const std::uint32_t half = 1U << (dropped - 1);
  const bool up = remainder > half || (remainder == half && (kept & 1) != 0);
  // A normal significand carries its leading 1 into the exponent field, and rounding up may carry once more.
  const std::uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  return static_cast<std::uint16_t>(sign | (base + kept + (up ? 1 : 0)));
}

}  // namespace lockstep::kernels
