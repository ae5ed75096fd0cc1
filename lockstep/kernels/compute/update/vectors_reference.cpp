// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "lockstep/kernels/compute/update/vectors.h"

namespace lockstep::kernels {

void sums_of_squares_reference(std::span<const float> values, std::span<double> sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i / kSquaresBlock] += double{values[i]} * double{values[i]};
  }
}

double sum_of_reference(std::span<const float> values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum;
}

void scale_reference(std::span<float> values, float factor) {
  for (float& value : values) value *= factor;
}

std::optional<std::size_t> first_not_finite_reference(std::span<const float> values) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return std::nullopt;
  return static_cast<std::size_t>(bad - values.begin());
}

}  // namespace lockstep::kernels
