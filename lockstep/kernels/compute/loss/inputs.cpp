// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/loss/inputs.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {

void check_head(const HeadInputs& inputs, std::span<const float> losses) {
  const std::size_t tokens = inputs.x.rows;
  if (inputs.targets.size() != tokens || losses.size() != tokens ||
      inputs.weight.columns != inputs.x.columns || inputs.weight.dtype != inputs.x.dtype) {
    throw UsageError(
        fmt::format("head_loss: {} tokens of width {} ({}) with {} targets, {} losses and a weight of width "
                    "{} ({}) do not fit",
                    tokens, inputs.x.columns, name_of(inputs.x.dtype), inputs.targets.size(), losses.size(),
                    inputs.weight.columns, name_of(inputs.weight.dtype)));
  }
  for (std::size_t i = 0; i < tokens; ++i) {
    if (inputs.targets[i] < inputs.weight.rows || inputs.targets[i] == kIgnoredTarget) continue;
    throw UsageError(fmt::format("head_loss: target {} of token {} is not in the vocabulary of {}",
                                 inputs.targets[i], i, inputs.weight.rows));
  }
}

void check_head(const HeadInputs& inputs, const HeadGradients& gradients) {
  const auto same_size = [](const Matrix& a, const ConstMatrix& b) {
    return a.rows == b.rows && a.columns == b.columns;
  };
  if (same_size(gradients.x, inputs.x) && gradients.x.dtype == inputs.x.dtype &&
      same_size(gradients.weight, inputs.weight) && gradients.weight.dtype == DType::fp32) {
    return;
  }
  throw UsageError(
      "head_loss: the gradients must have the shapes of x and of the weight, that of the weight in fp32");
}

}  // namespace lockstep::kernels
