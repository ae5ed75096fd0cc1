// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rotary/frequencies.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {
namespace {

void check(std::size_t width, double theta) {
  if (width == 0 || width % 2 != 0) {
    throw UsageError(fmt::format("rotary: the width of a head is {} and must be even", width));
  }
  if (!(theta > 0)) throw UsageError(fmt::format("rotary: theta is {} and must be above 0", theta));
}

void check(const RotaryScaling& scaling) {
  const bool good = scaling.factor >= 1 && scaling.low_freq_factor > 0 &&
                    scaling.high_freq_factor > scaling.low_freq_factor && scaling.original_length > 0;
  if (good) return;
  throw UsageError(fmt::format(
      "rotary: a scaling by {} between {} and {} turns in {} places is none: the factor must be 1 "
      "or more, and the others above 0 and rising",
      scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_length));
}

double scaled(double frequency, const RotaryScaling& scaling) {
  const double turns = scaling.original_length * frequency / (2 * std::numbers::pi);
  if (turns >= scaling.high_freq_factor) return frequency;
  if (turns <= scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(std::size_t width, double theta,
                                       const std::optional<RotaryScaling>& scaling) {
  check(width, theta);
  if (scaling) check(*scaling);
  std::vector<double> frequencies;
  for (std::size_t i = 0; i < width; i += 2) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(width));
    frequencies.push_back(scaling ? scaled(frequency, *scaling) : frequency);
  }
  return frequencies;
}

}  // namespace lockstep::kernels
