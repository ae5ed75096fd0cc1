// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

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

// What the backward pass of one key head works on. The gradients of its keys and values are summed in fp32
// over the query heads that share it, in their order.
struct KeyHead {
  ConstMatrix k;
  ConstMatrix v;
  Matrix dk;
  Matrix dv;
};

// One query head of one sequence.
struct QueryHead {
  ConstMatrix q;
  ConstMatrix out;
  ConstMatrix dout;
  Matrix dq;
  std::span<const float> log_sums;  // one per row, `heads` apart
  std::size_t heads;
};

class Backward {
 public:
  Backward(const AttentionShape& shape, const QueryHead& query, const KeyHead& key)
      : space_(AttentionWorkspace::mine()), shape_(shape), query_(query), key_(key) {}

  void run() {
    for (std::size_t first = 0; first < shape_.length; first += kQueryBlock) {
      const std::size_t rows = std::min(kQueryBlock, shape_.length - first);
      const Matrix dq = space_.matrix(Slot::sums, DType::fp32, rows, shape_.width);
      for (std::size_t key = 0; key < first + rows; key += kKeyBlock) {
        add_block(first, rows, key, std::min(kKeyBlock, first + rows - key), dq);
      }
      for (std::size_t row = 0; row < rows; ++row) {
        from_floats(float_row(dq, row), query_.dq.row(first + row), query_.dq.dtype);
      }
    }
  }

 private:
  void add_block(std::size_t first, std::size_t rows, std::size_t first_key, std::size_t keys,
                 const Matrix& dq) {
    const std::size_t width = shape_.width;
    const ConstMatrix q = query_.q.part(first, rows, 0, width);
    const ConstMatrix dout = query_.dout.part(first, rows, 0, width);
    const ConstMatrix k = key_.k.part(first_key, keys, 0, width);
    const ConstMatrix v = key_.v.part(first_key, keys, 0, width);
    const Matrix scores = space_.matrix(Slot::scores, DType::fp32, rows, keys);
    const Matrix gradients = space_.matrix(Slot::gradients, DType::fp32, rows, keys);
    multiply({q}, transposed(k), scores, {});
    multiply({dout}, transposed(v), gradients, {});
    for (std::size_t row = 0; row < rows; ++row) back_through_row(first, row, first_key, scores, gradients);

    const ConstMatrix weights = space_.narrowed(Slot::narrow_scores, scores, q.dtype);
    const ConstMatrix slopes = space_.narrowed(Slot::narrow_gradients, gradients, q.dtype);
    multiply(transposed(weights), {dout}, key_.dv.part(first_key, keys, 0, width), {Store::add});
    multiply(transposed(slopes), {q}, key_.dk.part(first_key, keys, 0, width), {Store::add});
    multiply({slopes}, {k}, dq, {first_key == 0 ? Store::replace : Store::add});
  }

  void back_through_row(std::size_t first, std::size_t row, std::size_t first_key, const Matrix& scores,
                        const Matrix& gradients) {
    const std::size_t place = first + row;
    const std::size_t visible = place < first_key ? 0 : std::min(scores.columns, place + 1 - first_key);
    const std::span<float> p = float_row(scores, row);
    const std::span<float> dp = float_row(gradients, row);
    const auto hidden = static_cast<std::ptrdiff_t>(visible);
    std::fill(p.begin() + hidden, p.end(), 0.0F);
    std::fill(dp.begin() + hidden, dp.end(), 0.0F);
    probabilities(p.first(visible), shape_.scale, query_.log_sums[place * query_.heads]);
    through_softmax(p.first(visible), dp.first(visible), mean_gradient(place), shape_.scale);
  }

  // The sum over all keys of probability times gradient, which is out . dout.
  float mean_gradient(std::size_t place) {
    const std::span<float> both = space_.floats(Slot::out, 2 * shape_.width);
    const std::span<float> out = both.first(shape_.width);
    const std::span<float> dout = both.last(shape_.width);
    to_floats(query_.out.row(place), query_.out.dtype, out);
    to_floats(query_.dout.row(place), query_.dout.dtype, dout);
    return dot(out, dout);
  }

  AttentionWorkspace& space_;
  const AttentionShape& shape_;
  const QueryHead& query_;
  const KeyHead& key_;
};

Matrix zeroed(const Matrix& matrix) {
  std::memset(matrix.data, 0, matrix.rows * matrix.columns * size_of(matrix.dtype));
  return matrix;
}

void store(const Matrix& from, const Matrix& to) {
  for (std::size_t row = 0; row < from.rows; ++row) from_floats(float_row(from, row), to.row(row), to.dtype);
}

}  // namespace

void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, ConstMatrix out,
                        ConstMatrix out_gradient, std::span<const float> log_sums,
                        const AttentionGradients& gradients) {
  check_attention(shape, inputs, out, log_sums.size());
  check_attention(shape, {gradients.q, gradients.k, gradients.v}, out_gradient, log_sums.size());
  const std::size_t group = shape.heads / shape.kv_heads;
  parallel_for(shape.batch * shape.kv_heads, [&](std::size_t item) {
    const std::size_t sequence = item / shape.kv_heads;
    const std::size_t kv_head = item % shape.kv_heads;
    AttentionWorkspace& space = AttentionWorkspace::mine();
    const KeyHead key = {
        .k = space.multipliable(Slot::k, head_of(shape, inputs.k, sequence, kv_head)),
        .v = space.multipliable(Slot::v, head_of(shape, inputs.v, sequence, kv_head)),
        .dk = zeroed(space.matrix(Slot::dk, DType::fp32, shape.length, shape.width)),
        .dv = zeroed(space.matrix(Slot::dv, DType::fp32, shape.length, shape.width)),
    };
    for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const QueryHead query = {
          .q = space.multipliable(Slot::q, head_of(shape, inputs.q, sequence, head)),
          .out = head_of(shape, out, sequence, head),
          .dout = space.multipliable(Slot::dout, head_of(shape, out_gradient, sequence, head)),
          .dq = head_of(shape, gradients.q, sequence, head),
          .log_sums = log_sums.subspan(sequence * shape.length * shape.heads + head),
          .heads = shape.heads,
      };
      Backward(shape, query, key).run();
    }
    store(key.dk, head_of(shape, gradients.k, sequence, kv_head));
    store(key.dv, head_of(shape, gradients.v, sequence, kv_head));
  });
}

}  // namespace lockstep::kernels
