// SPDX-License-Identifier: Apache-2.0
//
// Activations on one row of floats. Spans of one call have one size; results may be written over operands.
#pragma once

#include <span>

namespace lockstep::kernels {

void gelu(std::span<const float> in, std::span<float> out);
void gelu_gradient(std::span<const float> in, std::span<const float> out_gradient,
                   std::span<float> in_gradient);

struct SwigluRow {
  std::span<const float> gate;
  std::span<const float> up;
};
void swiglu(const SwigluRow& row, std::span<float> out);
void swiglu_gradients(const SwigluRow& row, std::span<const float> out_gradient,
                      std::span<float> gate_gradient, std::span<float> up_gradient);

}  // namespace lockstep::kernels
