// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/norm/check.h"

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

void check_norm(const Norm& norm, const ConstMatrix& in, const NormStatistics& statistics) {
  check_matrix("norm: the weight", norm.weight, 1, in.columns, in.dtype);
  if (norm.bias.data != nullptr) check_matrix("norm: the bias", norm.bias, 1, in.columns, in.dtype);
  if (norm.kind == NormKind::rms && norm.bias.data != nullptr) {
    throw UsageError("norm: RMSNorm has no bias; give one to LayerNorm only");
  }
  check_count("norm: the means", statistics.means.size(), in.rows);
  check_count("norm: the scales", statistics.scales.size(), in.rows);
}

void check_norm_gradients(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                          const NormGradients& gradients) {
  check_like("norm: the gradient of the output", out_gradient, in);
  check_like("norm: the gradient of the input", gradients.in, in);
  check_count("norm: the gradients of weights", gradients.weight.size(), in.columns);
  check_count("norm: the gradients of biases", gradients.bias.size(),
              norm.bias.data == nullptr ? 0 : in.columns);
}

}  // namespace lockstep::kernels
