// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace lockstep::kernels {

// How LLaMA 3.1 stretches the rotary embedding of a model that was trained on `original_length` places, so
// that it reads `factor` times as many. A frequency f turns once in 2 pi / f places. One that turns at least
// high_freq_factor times in the original length stays; one that turns at most low_freq_factor times becomes
// f / factor; between the two, its share of f grows linearly with the number of turns.
struct RotaryScaling {
  double factor = 8.0;            // 1 or more
  double low_freq_factor = 1.0;   // above 0
  double high_freq_factor = 4.0;  // above low_freq_factor
  double original_length = 8192;  // above 0
};

// The angles by which the pairs 0 .. width / 2 - 1 of a head turn from one place to the next:
// theta^(-2 i / width), scaled. UsageError unless `width` is even and above 0, `theta` is above 0 and the
// scaling is as above.
std::vector<double> rotary_frequencies(std::size_t width, double theta,
                                       const std::optional<RotaryScaling>& scaling);

}  // namespace lockstep::kernels
