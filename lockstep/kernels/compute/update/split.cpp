// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/split.h"

#include <bit>

#include "lockstep/base/error.h"
#include "lockstep/kernels/float16.h"

namespace lockstep::kernels {
namespace {

constexpr std::uint32_t kHalf = 0x8000;
constexpr std::uint32_t kMagnitude = 0x7FFFFFFF;
constexpr std::uint32_t kInfinity = 0x7F800000;

}  // namespace

// Rounding up adds one to the upper half exactly when the lower one is at least a half: join() undoes it. A
// NaN must not be rounded, for adding to its payload may carry into the sign and leave a zero. Compilers turn
// both loops into vector code.

void split(std::span<const float> values, std::span<std::uint16_t> upper, std::span<std::uint16_t> lower) {
  LOCKSTEP_CHECK(upper.size() == values.size() && lower.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const bool is_nan = (bits & kMagnitude) > kInfinity;
    upper[i] = is_nan ? kNanBf16 : static_cast<std::uint16_t>((bits + kHalf) >> 16U);
    lower[i] = is_nan ? std::uint16_t{0} : static_cast<std::uint16_t>(bits);
  }
}

void join(std::span<const std::uint16_t> upper, std::span<const std::uint16_t> lower,
          std::span<float> values) {
  LOCKSTEP_CHECK(upper.size() == values.size() && lower.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t low = lower[i];
    const std::uint32_t high = upper[i] - (low >> 15U);
    values[i] = std::bit_cast<float>((high << 16U) | low);
  }
}

}  // namespace lockstep::kernels
