// SPDX-License-Identifier: Apache-2.0
//
// The pieces of attention between its products, on one row of scores.
#pragma once

#include <span>

namespace lockstep::kernels {

// scores = exp(scale * scores - highest), where `highest` is the larger of `before` and the row's own.
// Returns it and the sum of the exponentials.
struct RowSum {
  float highest;
  float sum;
};
RowSum exponentiate(std::span<float> scores, float scale, float before);

// scores = exp(scale * scores - log_sum): the probabilities again.
void probabilities(std::span<float> scores, float scale, float log_sum);

// gradients = probabilities * (gradients - mean) * scale: back through the softmax.
void through_softmax(std::span<const float> probabilities, std::span<float> gradients, float mean,
                     float scale);

void multiply_by(std::span<float> values, float factor);
float dot(std::span<const float> a, std::span<const float> b);

}  // namespace lockstep::kernels
