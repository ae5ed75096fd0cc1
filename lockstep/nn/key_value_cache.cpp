// SPDX-License-Identifier: Apache-2.0
//
// B batch, Q queries, T places, G key heads, H query heads of each, K head width.
#include "lockstep/nn/key_value_cache.h"

#include <cmath>
#include <limits>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::nn {

void KeyValueCache::append(const at::Tensor& k, const at::Tensor& v) {
  const at::NoGradGuard not_recording;
  const std::int64_t places = k.size(1);
  if (length_ + places > capacity_) {
    throw UsageError(
        fmt::format("a cache of {} places has no room for place {}", capacity_, length_ + places));
  }
  if (!keys_.defined()) {
    keys_ = at::empty({k.size(0), capacity_, k.size(2)}, k.options());
    values_ = at::empty({v.size(0), capacity_, v.size(2)}, v.options());
  }
  keys_.narrow(1, length_, places).copy_(k);
  values_.narrow(1, length_, places).copy_(v);
  length_ += places;
}

at::Tensor cached_attention(const at::Tensor& q, const KeyValueCache& cache, std::int64_t heads,
                            std::int64_t kv_heads) {
  const at::NoGradGuard not_recording;
  const std::int64_t batch = q.size(0), queries = q.size(1), places = cache.length();
  const std::int64_t group = heads / kv_heads, width = q.size(2) / heads;
  LOCKSTEP_CHECK(queries <= places && q.size(2) % heads == 0 && heads % kv_heads == 0);
  const auto by_head = [&](const at::Tensor& x) {
    return x.reshape({batch, places, kv_heads, width}).transpose(1, 2).to(at::kFloat);
  };
  // The query heads that share a key head stand as more queries of it.
  const at::Tensor q_BGHQK = q.reshape({batch, queries, kv_heads, group, width}).permute({0, 2, 3, 1, 4});
  const at::Tensor q_BGRK = q_BGHQK.reshape({batch, kv_heads, group * queries, width}).to(at::kFloat);
  at::Tensor scores = q_BGRK.matmul(by_head(cache.keys()).transpose(-1, -2));
  scores = scores.div(std::sqrt(static_cast<double>(width))).view({batch, kv_heads, group, queries, places});
  const at::Tensor later =
      at::ones({queries, places}, q.options().dtype(at::kBool)).triu(places - queries + 1);
  const at::Tensor weights = scores.masked_fill(later, -std::numeric_limits<double>::infinity()).softmax(-1);
  const at::Tensor mixed =
      weights.view({batch, kv_heads, group * queries, places}).matmul(by_head(cache.values()));
  return mixed.view({batch, kv_heads, group, queries, width})
      .permute({0, 3, 1, 2, 4})
      .reshape({batch, queries, heads * width})
      .to(q.scalar_type());
}

}  // namespace lockstep::nn
