// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/loss/lane_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lockstep/kernels/compute/attention/softmax.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/lanes/sum.h"
#include "lockstep/kernels/compute/loss/inputs.h"
#include "lockstep/kernels/compute/loss/memory.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

std::size_t rows_here(const DividedHead& head) {
  std::size_t rows = 0;
  for (const HeadLane& lane : head.here) rows += lane.weight.rows;
  return rows;
}

// Some tokens, and the lanes that are computed here.
class LaneChunk {
 public:
  LaneChunk(const DividedHead& head, std::size_t first, std::size_t tokens)
      : head_(head),
        x_(head.x.part(first, tokens, 0, head.x.columns)),
        targets_(head.targets.subspan(first, tokens)),
        statistics_(head.lanes * lane_statistics * tokens) {
    float* memory = chunk_memory(tokens * rows_here(head)).data();
    for (const HeadLane& lane : head.here) {
      logits_.push_back(matrix_of(memory, DType::fp32, tokens, lane.weight.rows));
      memory += tokens * lane.weight.rows;
      gemm({x_}, transposed(lane.weight), logits_.back());
    }
  }

  // Turns logits into exponentials.
  void lose(std::span<float> losses) {
    each_row_of_each_lane([&](std::size_t lane, std::size_t token) { exponentiate_row(lane, token); });
    head_.exchange(statistics_);
    for (std::size_t token = 0; token < targets_.size(); ++token) {
      const TokenSoftmax all = softmax_over_lanes(statistics_, head_.lanes, token);
      losses[token] = targets_[token] == kIgnoredTarget ? 0.0F : all.highest + std::log(all.sum) - all.target;
    }
  }

  // After lose(). `memory` is for partial sums of the largest chunk; without it there is one lane here.
  void go_back(float scale, const Matrix& x_gradient, std::span<std::byte> memory) {
    each_row_of_each_lane([&](std::size_t lane, std::size_t token) { turn_to_gradient(lane, token, scale); });
    const std::size_t elements = x_gradient.rows * x_gradient.columns;
    std::vector<const std::byte*> partials;
    for (std::size_t i = 0; i < head_.here.size(); ++i) {
      std::byte* const partial =
          memory.empty() ? x_gradient.data : memory.data() + i * elements * size_of(x_.dtype);
      partials.push_back(partial);
      gemm({slopes_of(i)}, {head_.here[i].weight},
           matrix_of(partial, x_.dtype, x_gradient.rows, x_gradient.columns));
      gemm(transposed(slopes_of(i)), {x_}, head_.here[i].weight_gradient, Store::add);
    }
    sum_lanes(x_.dtype, partials, x_gradient.data, elements);
  }

 private:
  template <typename Body>
  void each_row_of_each_lane(const Body& body) const {
    const std::size_t tokens = targets_.size();
    parallel_for(head_.here.size() * tokens, [&](std::size_t i) { body(i / tokens, i % tokens); });
  }

  std::span<float> values_of(std::size_t lane, std::size_t token) const {
    return {reinterpret_cast<float*>(logits_[lane].row(token)), logits_[lane].columns};
  }
  float& statistic(std::size_t lane, LaneStatistic which, std::size_t token) {
    return statistics_[((head_.first_lane + lane) * lane_statistics + which) * targets_.size() + token];
  }
  bool has_target(std::size_t lane, std::size_t token) const {
    const HeadLane& mine = head_.here[lane];
    return targets_[token] >= mine.first && targets_[token] - mine.first < mine.weight.rows;
  }

  void exponentiate_row(std::size_t lane, std::size_t token) {
    const std::span<float> values = values_of(lane, token);
    statistic(lane, target_logit, token) =
        has_target(lane, token) ? values[targets_[token] - head_.here[lane].first] : kNone;
    const RowSum row = values.empty() || targets_[token] == kIgnoredTarget
                           ? RowSum{.highest = kNone, .sum = 0.0F}
                           : exponentiate(values, 1.0F, kNone);
    statistic(lane, highest_logit, token) = row.highest;
    statistic(lane, sum_of_exponentials, token) = row.sum;
  }

  // The memory of the lane's logits in the dtype of the products to come.
  Matrix slopes_of(std::size_t lane) const {
    const Matrix& logits = logits_[lane];
    return {logits.data, x_.dtype, logits.rows, logits.columns,
            logits.columns * sizeof(float) / size_of(x_.dtype)};
  }

  void turn_to_gradient(std::size_t lane, std::size_t token, float scale) {
    const Matrix slopes = slopes_of(lane);
    if (slopes.columns == 0) return;
    if (targets_[token] == kIgnoredTarget) {
      std::memset(slopes.row(token), 0, slopes.columns * size_of(slopes.dtype));
      return;
    }
    const std::span<float> values = row_memory(slopes.columns);
    std::memcpy(values.data(), slopes.row(token), values.size_bytes());
    const TokenSoftmax all = softmax_over_lanes(statistics_, head_.lanes, token);
    const float highest_here = statistic(lane, highest_logit, token);
    multiply_by(values, std::exp(highest_here - all.highest) / all.sum * scale);
    if (has_target(lane, token)) values[targets_[token] - head_.here[lane].first] -= scale;
    from_floats(values, slopes.row(token), slopes.dtype);
  }

  const DividedHead& head_;
  ConstMatrix x_;
  std::span<const std::uint32_t> targets_;
  std::vector<Matrix> logits_;  // of each lane here
  std::vector<float> statistics_;
};

template <typename Body>
void for_each_chunk(const DividedHead& head, Body body) {
  for (std::size_t first = 0; first < head.x.rows; first += kLossChunk) {
    const std::size_t tokens = std::min(kLossChunk, head.x.rows - first);
    LaneChunk chunk(head, first, tokens);
    body(chunk, first, tokens);
  }
}

}  // namespace

void lane_head_loss(const DividedHead& head, std::span<float> losses) {
  check_divided_head(head, losses);
  for_each_chunk(head, [&](LaneChunk& chunk, std::size_t first, std::size_t tokens) {
    chunk.lose(losses.subspan(first, tokens));
  });
}

void lane_head_loss(const DividedHead& head, std::span<float> losses, float scale, const Matrix& x_gradient) {
  check_divided_head(head, losses);
  check_divided_head(head, x_gradient);
  const std::size_t lanes = head.here.size();
  const std::size_t chunk_bytes = std::min(kLossChunk, head.x.rows) * head.x.columns * size_of(head.x.dtype);
  std::vector<std::byte> partials(lanes == 1 ? 0 : lanes * chunk_bytes);
  for_each_chunk(head, [&](LaneChunk& chunk, std::size_t first, std::size_t tokens) {
    chunk.lose(losses.subspan(first, tokens));
    chunk.go_back(scale, x_gradient.part(first, tokens, 0, x_gradient.columns), partials);
  });
}

}  // namespace lockstep::kernels
