// SPDX-License-Identifier: Apache-2.0
//
// Causal attention: out = softmax(scale q k^T, keys up to the query's own place) v, for each head. The matrix
// of all scores is never stored: queries are taken in blocks, keys in blocks, and the softmax is renormalized
// on the way.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

// How the rows of q, k and v hang together. Row b * length + t belongs to place t of sequence b; in it, head
// h has columns h * width up to (h + 1) * width. Query heads come in groups of heads / kv_heads that share a
// key head.
struct AttentionShape {
  std::size_t batch = 0;
  std::size_t length = 0;
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t width = 0;     // of a head
  float scale = 1.0F;        // of the scores, usually 1 / sqrt(width)

  std::size_t rows() const { return batch * length; }
};

// All of one dtype, bf16 or fp32 or fp16, with strides of their own (so that they may be parts of one
// matrix).
struct AttentionInputs {
  ConstMatrix q;  // rows() x heads * width
  ConstMatrix k;  // rows() x kv_heads * width
  ConstMatrix v;  // rows() x kv_heads * width
};

// `out`: rows() x heads * width. `log_sums`: for each row and head (row-major) the logarithm of the sum of
// the exponentials of its scores, which the backward pass needs. UsageError when shapes do not fit.
void attention_forward(const AttentionShape& shape, const AttentionInputs& inputs, const Matrix& out,
                       std::span<float> log_sums);

// The gradients of q, k and v are replaced. `out` and `log_sums` are those of the forward pass.
struct AttentionGradients {
  Matrix q;
  Matrix k;
  Matrix v;
};
void attention_backward(const AttentionShape& shape, const AttentionInputs& inputs, ConstMatrix out,
                        ConstMatrix out_gradient, std::span<const float> log_sums,
                        const AttentionGradients& gradients);

// The same in plain C++ with all scores of a row in memory, sums in fp64: the twins that tests compare with.
void attention_forward_reference(const AttentionShape& shape, const AttentionInputs& inputs,
                                 const Matrix& out, std::span<float> log_sums);
void attention_backward_reference(const AttentionShape& shape, const AttentionInputs& inputs,
                                  ConstMatrix out_gradient, const AttentionGradients& gradients);

}  // namespace lockstep::kernels
