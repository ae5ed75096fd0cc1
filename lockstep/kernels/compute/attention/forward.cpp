// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/kernels/compute/attention/shape.h"
#include "lockstep/kernels/compute/attention/softmax.h"
#include "lockstep/kernels/compute/attention/workspace.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/onednn.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

using Slot = AttentionWorkspace::Slot;

// One block of queries of one head, while the blocks of its keys pass by.
class QueryBlock {
 public:
  QueryBlock(const ConstMatrix& queries, std::size_t first, float scale)
      : space_(AttentionWorkspace::mine()),
        queries_(queries),
        first_(first),
        scale_(scale),
        sums_(space_.matrix(Slot::sums, DType::fp32, queries.rows, queries.columns)) {
    highest_.fill(-std::numeric_limits<float>::infinity());
    total_.fill(0.0F);
  }

  // Keys and values from place `first` on; the first block has first == 0.
  void add(const ConstMatrix& keys, const ConstMatrix& values, std::size_t first) {
    const Matrix scores = space_.matrix(Slot::scores, DType::fp32, queries_.rows, keys.rows);
    multiply({queries_}, transposed(keys), scores, {});
    for (std::size_t row = 0; row < queries_.rows; ++row) exponentiate_visible(scores, row, first);
    const ConstMatrix weights = space_.narrowed(Slot::narrow_scores, scores, values.dtype);
    multiply({weights}, {values}, sums_, {first == 0 ? Store::replace : Store::add});
  }

  void finish(const Matrix& out, std::span<float> log_sums, std::size_t heads) {
    for (std::size_t row = 0; row < queries_.rows; ++row) {
      const std::span<float> sums = float_row(sums_, row);
      multiply_by(sums, 1.0F / total_[row]);
      from_floats(sums, out.row(row), out.dtype);
      log_sums[row * heads] = highest_[row] + std::log(total_[row]);
    }
  }

 private:
  // Later keys than the query's own place count for nothing.
  void exponentiate_visible(const Matrix& scores, std::size_t row, std::size_t first_key) {
    const std::span<float> all = float_row(scores, row);
    const std::size_t place = first_ + row;
    const std::size_t visible = place < first_key ? 0 : std::min(all.size(), place + 1 - first_key);
    std::fill(all.begin() + static_cast<std::ptrdiff_t>(visible), all.end(), 0.0F);
    if (visible == 0) return;
    const auto [highest, sum] = exponentiate(all.first(visible), scale_, highest_[row]);
    if (first_key > 0) {
      const float correction = std::exp(highest_[row] - highest);
      multiply_by(float_row(sums_, row), correction);
      total_[row] *= correction;
    }
    highest_[row] = highest;
    total_[row] += sum;
  }

  AttentionWorkspace& space_;
  ConstMatrix queries_;
  std::size_t first_;
  float scale_;
  Matrix sums_;
  std::array<float, kQueryBlock> highest_;
  std::array<float, kQueryBlock> total_;
};

void forward_head(const AttentionShape& shape, const AttentionInputs& inputs, const Matrix& out,
                  std::span<float> log_sums, std::size_t sequence, std::size_t head) {
  AttentionWorkspace& space = AttentionWorkspace::mine();
  const std::size_t kv_head = kv_head_of(shape, head);
  const ConstMatrix q = space.multipliable(Slot::q, head_of(shape, inputs.q, sequence, head));
  const ConstMatrix k = space.multipliable(Slot::k, head_of(shape, inputs.k, sequence, kv_head));
  const ConstMatrix v = space.multipliable(Slot::v, head_of(shape, inputs.v, sequence, kv_head));
  const Matrix result = head_of(shape, out, sequence, head);
  for (std::size_t first = 0; first < shape.length; first += kQueryBlock) {
    const std::size_t rows = std::min(kQueryBlock, shape.length - first);
    QueryBlock block(q.part(first, rows, 0, shape.width), first, shape.scale);
    for (std::size_t key = 0; key < first + rows; key += kKeyBlock) {
      const std::size_t keys = std::min(kKeyBlock, first + rows - key);
      block.add(k.part(key, keys, 0, shape.width), v.part(key, keys, 0, shape.width), key);
    }
    block.finish(result.part(first, rows, 0, shape.width),
                 log_sums.subspan((sequence * shape.length + first) * shape.heads + head), shape.heads);
  }
}

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, const Matrix& out,
                       std::span<float> log_sums) {
  check_attention(shape, inputs, out, log_sums.size());
  parallel_for(shape.batch * shape.heads, [&](std::size_t item) {
    forward_head(shape, inputs, out, log_sums, item / shape.heads, item % shape.heads);
  });
}

}  // namespace lockstep::kernels
