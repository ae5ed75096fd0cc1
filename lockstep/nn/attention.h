// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// Causal attention of `heads` query heads over `kv_heads` key heads. q: [batch, length, heads * width], k and
// v: [batch, length, kv_heads * width] (they may be parts of one tensor). Scores are scaled by 1 /
// sqrt(width).
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t heads,
                            std::int64_t kv_heads);

}  // namespace lockstep::nn
