// SPDX-License-Identifier: Apache-2.0
//
// What is done to whole gradients between the backward pass and the update. Sums have a fixed order: inside
// blocks of a fixed size, then over the blocks, in double.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace lockstep::kernels {

// Squares are summed by blocks of this many values, so that the norm of a vector has the same bits whoever
// holds which blocks of it.
inline constexpr std::size_t kSquaresBlock = 4096;

// sums[i]: the sum of the squares of block i; as many as blocks begin in the values.
void sums_of_squares(std::span<const float> values, std::span<double> sums);

double sum_of(std::span<const float> values);

// values *= factor
void scale(std::span<float> values, float factor);

// The place of the first value that is infinite or not a number.
std::optional<std::size_t> first_not_finite(std::span<const float> values);

// The same in plain C++: the twins that tests compare with. The sums of squares have the same bits, on every
// processor: ranks that clip copies of one gradient must agree on its norm.
void sums_of_squares_reference(std::span<const float> values, std::span<double> sums);
double sum_of_reference(std::span<const float> values);
void scale_reference(std::span<float> values, float factor);
std::optional<std::size_t> first_not_finite_reference(std::span<const float> values);

}  // namespace lockstep::kernels
