// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/loss/head_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lockstep/kernels/compute/attention/softmax.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/loss/inputs.h"
#include "lockstep/kernels/compute/loss/memory.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

// Turns logits into exponentials and returns the loss and what makes probabilities of them.
struct Softmax {
  float loss;
  float reciprocal;
};
Softmax soften(std::span<float> logits, std::uint32_t target) {
  const float at_target = logits[target];
  const auto [highest, sum] = exponentiate(logits, 1.0F, -std::numeric_limits<float>::infinity());
  return {.loss = highest + std::log(sum) - at_target, .reciprocal = 1.0F / sum};
}

class Chunk {
 public:
  Chunk(const HeadInputs& inputs, std::size_t first, std::size_t tokens)
      : x_(inputs.x.part(first, tokens, 0, inputs.x.columns)),
        weight_(inputs.weight),
        targets_(inputs.targets.subspan(first, tokens)) {
    logits_ = matrix_of(chunk_memory(tokens * weight_.rows).data(), DType::fp32, tokens, weight_.rows);
    gemm({x_}, transposed(weight_), logits_);
  }

  void lose(std::span<float> losses) const {
    parallel_for(logits_.rows, [&](std::size_t row) {
      losses[row] = targets_[row] == kIgnoredTarget ? 0.0F : soften(logits_of(row), targets_[row]).loss;
    });
  }

  void lose(std::span<float> losses, float scale, const Matrix& x_gradient,
            const Matrix& weight_gradient) const {
    const Matrix slopes = {logits_.data, x_.dtype, logits_.rows, logits_.columns,
                           logits_.columns * sizeof(float) / size_of(x_.dtype)};
    parallel_for(logits_.rows, [&](std::size_t row) { losses[row] = turn_to_gradient(row, scale, slopes); });
    gemm({slopes}, {weight_}, x_gradient);
    gemm(transposed(slopes), {x_}, weight_gradient, Store::add);
  }

 private:
  std::span<float> logits_of(std::size_t row) const {
    return {reinterpret_cast<float*>(logits_.row(row)), logits_.columns};
  }

  // Writes the gradient of the row's logits over them, in the dtype of the products to come.
  float turn_to_gradient(std::size_t row, float scale, const Matrix& slopes) const {
    if (targets_[row] == kIgnoredTarget) {
      std::memset(slopes.row(row), 0, slopes.columns * size_of(slopes.dtype));
      return 0.0F;
    }
    const std::span<float> values = row_memory(logits_.columns);
    std::memcpy(values.data(), logits_.row(row), values.size_bytes());
    const Softmax softmax = soften(values, targets_[row]);
    multiply_by(values, softmax.reciprocal * scale);
    values[targets_[row]] -= scale;
    from_floats(values, slopes.row(row), slopes.dtype);
    return softmax.loss;
  }

  ConstMatrix x_;
  ConstMatrix weight_;
  std::span<const std::uint32_t> targets_;
  Matrix logits_;
};

template <typename Body>
void for_each_chunk(const HeadInputs& inputs, Body body) {
  for (std::size_t first = 0; first < inputs.x.rows; first += kLossChunk) {
    const std::size_t tokens = std::min(kLossChunk, inputs.x.rows - first);
    body(Chunk(inputs, first, tokens), first, tokens);
  }
}

}  // namespace

void head_loss(const HeadInputs& inputs, std::span<float> losses) {
  check_head(inputs, losses);
  for_each_chunk(inputs, [&](const Chunk& chunk, std::size_t first, std::size_t tokens) {
    chunk.lose(losses.subspan(first, tokens));
  });
}

void head_loss(const HeadInputs& inputs, std::span<float> losses, const HeadGradients& gradients) {
  check_head(inputs, losses);
  check_head(inputs, gradients);
  for_each_chunk(inputs, [&](const Chunk& chunk, std::size_t first, std::size_t tokens) {
    chunk.lose(losses.subspan(first, tokens), gradients.scale,
               gradients.x.part(first, tokens, 0, gradients.x.columns), gradients.weight);
  });
}

}  // namespace lockstep::kernels
