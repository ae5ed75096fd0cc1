// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/loss/inputs.h"

#include <bit>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {
namespace {

void check_targets(std::span<const std::uint32_t> targets, std::size_t vocabulary) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < vocabulary || targets[i] == kIgnoredTarget) continue;
    throw UsageError(fmt::format("head_loss: target {} of token {} is not in the vocabulary of {}",
                                 targets[i], i, vocabulary));
  }
}

}  // namespace

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
  check_targets(inputs.targets, inputs.weight.rows);
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

void check_divided_head(const DividedHead& head, std::span<const float> losses) {
  const std::size_t tokens = head.x.rows;
  bool fits = head.targets.size() == tokens && losses.size() == tokens && std::has_single_bit(head.lanes) &&
              std::has_single_bit(head.here.size()) && head.first_lane + head.here.size() <= head.lanes &&
              head.exchange != nullptr;
  for (const HeadLane& lane : head.here) {
    fits = fits && lane.weight.columns == head.x.columns && lane.weight.dtype == head.x.dtype &&
           lane.weight.rows <= head.vocabulary && lane.first <= head.vocabulary - lane.weight.rows;
  }
  if (!fits) {
    throw UsageError(
        fmt::format("head_loss: {} tokens of width {} ({}) with {} targets, {} losses and lanes {} to {} of "
                    "{} do not fit",
                    tokens, head.x.columns, name_of(head.x.dtype), head.targets.size(), losses.size(),
                    head.first_lane, head.first_lane + head.here.size(), head.lanes));
  }
  check_targets(head.targets, head.vocabulary);
}

void check_divided_head(const DividedHead& head, const Matrix& x_gradient) {
  bool fits = x_gradient.rows == head.x.rows && x_gradient.columns == head.x.columns &&
              x_gradient.dtype == head.x.dtype && x_gradient.stride == x_gradient.columns;
  for (const HeadLane& lane : head.here) {
    fits = fits && lane.weight_gradient.rows == lane.weight.rows &&
           lane.weight_gradient.columns == lane.weight.columns && lane.weight_gradient.dtype == DType::fp32;
  }
  if (fits) return;
  throw UsageError(
      "head_loss: the gradients must have the shapes of x (without gaps) and of the lanes' weights, those of "
      "the weights in fp32");
}

}  // namespace lockstep::kernels
