// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/kernels/compute/update/vectors.h"

namespace lockstep::kernels {

namespace {

// Of columns 0, 8, 16 and 24 of 32, then of pairs 4, 2 and 1 apart.
double sum_of_columns(const std::array<double, 32>& c) {
  const auto four = [&](std::size_t i) { return (c[i] + c[i + 8]) + (c[i + 16] + c[i + 24]); };
  const auto eight = [&](std::size_t i) { return four(i) + four(i + 4); };
  return (eight(0) + eight(2)) + (eight(1) + eight(3));
}

// Rows of 32 values are added to each other, then their columns, then what is left over one by one.
double squares_of_block(std::span<const float> values) {
  std::array<double, 32> columns = {};
  const std::size_t whole = values.size() - values.size() % columns.size();
  for (std::size_t i = 0; i < whole; ++i)
    columns[i % columns.size()] += double{values[i]} * double{values[i]};
  double sum = sum_of_columns(columns);
  for (const float value : values.subspan(whole)) sum += double{value} * double{value};
  return sum;
}

}  // namespace

void sums_of_squares_reference(std::span<const float> values, std::span<double> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto rest = values.subspan(i * kSquaresBlock);
    sums[i] = squares_of_block(rest.first(std::min(kSquaresBlock, rest.size())));
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
