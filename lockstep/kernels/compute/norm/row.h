// SPDX-License-Identifier: Apache-2.0
//
// Norms on one row of floats.
#pragma once

#include <span>

namespace lockstep::kernels {

float mean_of(std::span<const float> values);
// The mean of (values - center)^2.
float spread_of(std::span<const float> values, float center);

// out = (in - mean) * scale * weight + bias; no bias if it is empty.
void normalize(std::span<const float> in, float mean, float scale, std::span<const float> weight,
               std::span<const float> bias, std::span<float> out);

// A row on its way back; n is its normalized input.
struct NormRow {
  std::span<const float> in;
  std::span<const float> out_gradient;
  float mean;
  float scale;
};

// Adds the row's share to the gradients of weight (out_gradient * n) and bias (out_gradient, unless empty).
// Returns the means of g = out_gradient * weight and of g * n.
struct NormMeans {
  float of_g;
  float of_gn;
};
NormMeans add_parameter_gradients(const NormRow& row, std::span<const float> weight,
                                  std::span<float> weight_gradient, std::span<float> bias_gradient);

// in_gradient = before + scale * (g - means.of_g - n * means.of_gn); `before` may be in_gradient, and counts
// as zeros if it is empty.
void input_gradient(const NormRow& row, std::span<const float> weight, NormMeans means,
                    std::span<const float> before, std::span<float> in_gradient);

}  // namespace lockstep::kernels
