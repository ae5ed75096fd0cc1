// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/loss/inputs.h"

namespace lockstep::kernels {
namespace {

std::vector<float> row_of(const ConstMatrix& matrix, std::size_t row) {
  std::vector<float> values(matrix.columns);
  to_floats(matrix.row(row), matrix.dtype, values);
  return values;
}

void add_to_row(const Matrix& sums, std::size_t row, double factor, const std::vector<float>& values) {
  std::vector<float> sum = row_of(sums, row);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<float>(sum[i] + factor * values[i]);
  from_floats(sum, sums.row(row), sums.dtype);
}

}  // namespace

void head_loss_reference(const HeadInputs& inputs, std::span<float> losses, const HeadGradients& gradients) {
  check_head(inputs, losses);
  check_head(inputs, gradients);
  const std::size_t vocabulary = inputs.weight.rows;
  for (std::size_t token = 0; token < inputs.x.rows; ++token) {
    std::vector<double> slope(inputs.x.columns, 0.0);
    losses[token] = 0.0F;
    if (inputs.targets[token] != kIgnoredTarget) {
      const std::vector<float> x = row_of(inputs.x, token);
      std::vector<double> logits(vocabulary, 0.0);
      for (std::size_t word = 0; word < vocabulary; ++word) {
        const std::vector<float> weight = row_of(inputs.weight, word);
        for (std::size_t i = 0; i < x.size(); ++i) logits[word] += double{x[i]} * weight[i];
      }
      const double highest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (double logit : logits) sum += std::exp(logit - highest);
      losses[token] = static_cast<float>(highest + std::log(sum) - logits[inputs.targets[token]]);
      for (std::size_t word = 0; word < vocabulary; ++word) {
        const double probability = std::exp(logits[word] - highest) / sum;
        const double gradient = gradients.scale * (probability - (word == inputs.targets[token] ? 1.0 : 0.0));
        const std::vector<float> weight = row_of(inputs.weight, word);
        for (std::size_t i = 0; i < slope.size(); ++i) slope[i] += gradient * weight[i];
        add_to_row(gradients.weight, word, gradient, x);
      }
    }
    from_floats(std::vector<float>(slope.begin(), slope.end()), gradients.x.row(token), gradients.x.dtype);
  }
}

}  // namespace lockstep::kernels
