// SPDX-License-Identifier: Apache-2.0
//
// LayerNorm: out = (in - mean) / std * weight + bias over each row, std = sqrt(variance + epsilon).
// RMSNorm: out = in / rms * weight, rms = sqrt(mean of squares + epsilon); it has no mean and no bias.
#pragma once

#include <cstdint>
#include <span>

#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

enum class NormKind : std::uint8_t { layer, rms };

// `weight` and `bias` are one row of the dtype of the input; a bias without data counts as zeros.
struct Norm {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5F;
  ConstMatrix weight;
  ConstMatrix bias;
};

// What the backward pass needs of each row: its mean (0 for rms) and 1 / std or 1 / rms.
struct NormStatistics {
  std::span<float> means;
  std::span<float> scales;
};

// `out` has the shape and dtype of `in` and may be `in`. UsageError when shapes do not fit.
void norm_forward(const Norm& norm, const ConstMatrix& in, const Matrix& out,
                  const NormStatistics& statistics);

// Gradients of the input (replaced, or added to what is there, such as the gradient that passed the norm by),
// and of weight and bias (added). The bias's is empty if there is no bias.
struct NormGradients {
  Matrix in;
  Store store = Store::replace;
  std::span<float> weight;
  std::span<float> bias;
};
void norm_backward(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                   const NormStatistics& statistics, const NormGradients& gradients);

// The same in plain C++, sums in fp64: the twins that tests compare with.
void norm_forward_reference(const Norm& norm, const ConstMatrix& in, const Matrix& out,
                            const NormStatistics& statistics);
void norm_backward_reference(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                             const NormStatistics& statistics, const NormGradients& gradients);

}  // namespace lockstep::kernels
