// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rotary/frequencies.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/rotary/rotary.h"

namespace lockstep::kernels {
namespace {

// As the formula is published with LLaMA 3.1: in wavelengths, and in its order of cases.
double published(double frequency, const RotaryScaling& scaling) {
  const double wavelength = 2 * M_PI / frequency;
  const double low = scaling.original_length / scaling.low_freq_factor;
  const double high = scaling.original_length / scaling.high_freq_factor;
  if (wavelength < high) return frequency;
  if (wavelength > low) return frequency / scaling.factor;
  const double smooth = (scaling.original_length / wavelength - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

TEST(RotaryFrequencies, AreThoseOfThePublishedFormula) {
  const RotaryScaling of_3_1 = {};
  const RotaryScaling of_3_2 = {.factor = 32.0};
  const RotaryScaling odd = {
      .factor = 2.5, .low_freq_factor = 0.3, .high_freq_factor = 7, .original_length = 77};
  for (const RotaryScaling& scaling : {of_3_1, of_3_2, odd}) {
    const std::vector<double> found = rotary_frequencies(128, 500000.0, scaling);
    ASSERT_EQ(found.size(), 64U);
    int kept = 0, slowed = 0, mixed = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double plain = std::exp(-std::log(500000.0) * static_cast<double>(i) / 64.0);
      EXPECT_NEAR(found[i] / published(plain, scaling), 1.0, 1e-12) << i;
      const double share = found[i] / plain * scaling.factor;
      const bool is_slowed = std::abs(share - 1.0) < 1e-12;
      const bool is_kept = std::abs(share - scaling.factor) < 1e-12;
      slowed += is_slowed;
      kept += is_kept;
      mixed += !is_slowed && !is_kept;
    }
    EXPECT_GT(kept, 0);
    EXPECT_GT(slowed, 0);
    EXPECT_GT(mixed, 0);
  }
}

// Values of LLaMA 3.1 (width 128, theta 500000) that can be worked out by hand: the first pair turns by one,
// the last by 500000^(-126/128) / 8.
TEST(RotaryFrequencies, OfLlama31AtBothEnds) {
  const std::vector<double> found = rotary_frequencies(128, 500000.0, RotaryScaling{});
  EXPECT_EQ(found.front(), 1.0);
  EXPECT_NEAR(found.back(), 2.455e-6 / 8, 1e-9 / 8);
}

TEST(RotaryFrequencies, AFactorOfOneChangesNothing) {
  const std::vector<double> plain = rotary_frequencies(64, 10000.0, std::nullopt);
  const std::vector<double> scaled = rotary_frequencies(64, 10000.0, RotaryScaling{.factor = 1.0});
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], plain[i]);
}

TEST(RotaryFrequencies, WithoutScalingTheTableHasTheBitsOfThePlainFormula) {
  const RotaryTable table(50, 20, 10000.0);
  for (std::size_t place = 0; place < table.length(); ++place) {
    for (std::size_t i = 0; i < 10; ++i) {
      const double angle = static_cast<double>(place) * std::pow(10000.0, -static_cast<double>(2 * i) / 20.0);
      EXPECT_EQ(table.cosines(place)[i], static_cast<float>(std::cos(angle)));
      EXPECT_EQ(table.sines(place)[i], static_cast<float>(std::sin(angle)));
    }
  }
}

TEST(RotaryFrequencies, AreThoseOfTheTable) {
  const RotaryScaling scaling = {.factor = 4, .original_length = 16};
  const RotaryTable table(9, 8, 100.0, scaling);
  const std::vector<double> frequencies = rotary_frequencies(8, 100.0, scaling);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.cosines(7)[i], static_cast<float>(std::cos(7 * frequencies[i])));
    EXPECT_EQ(table.sines(7)[i], static_cast<float>(std::sin(7 * frequencies[i])));
  }
}

TEST(RotaryFrequencies, RefuseAScalingThatIsNone) {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const RotaryScaling& bad :
       {RotaryScaling{.factor = 0.5}, RotaryScaling{.factor = not_a_number},
        RotaryScaling{.low_freq_factor = 0}, RotaryScaling{.high_freq_factor = 1},
        RotaryScaling{.high_freq_factor = not_a_number}, RotaryScaling{.original_length = 0}}) {
    EXPECT_THROW(rotary_frequencies(8, 10000.0, bad), UsageError);
  }
}

}  // namespace
}  // namespace lockstep::kernels
