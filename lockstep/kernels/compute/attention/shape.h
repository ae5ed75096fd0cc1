// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/attention/attention.h"

namespace lockstep::kernels {

// UsageError unless the inputs have the shape.
void check_attention(const AttentionShape& shape, const AttentionInputs& inputs, ConstMatrix out,
                     std::size_t log_sums);

// The rows of one sequence and the columns of one head.
template <typename Byte>
BasicMatrix<Byte> head_of(const AttentionShape& shape, const BasicMatrix<Byte>& all, std::size_t sequence,
                          std::size_t head) {
  return all.part(sequence * shape.length, shape.length, head * shape.width, shape.width);
}

inline std::size_t kv_head_of(const AttentionShape& shape, std::size_t head) {
  return head / (shape.heads / shape.kv_heads);
}

}  // namespace lockstep::kernels
