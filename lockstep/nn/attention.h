// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/key_value_cache.h"

namespace lockstep::nn {

// Causal attention of `heads` query heads over `kv_heads` key heads. q: [batch, length, heads * width], k and
// v: [batch, length, kv_heads * width] (they may be parts of one tensor). Scores are scaled by 1 /
// sqrt(width). With a cache, k and v are appended to it, and the queries see all that it holds; then nothing
// is recorded.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t heads,
                            std::int64_t kv_heads, KeyValueCache* cache = nullptr);

}  // namespace lockstep::nn
