// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace lockstep::nn {

// The keys and values of the places that an attention layer has seen, so that the next place costs one query.
class KeyValueCache {
 public:
  // Room for `capacity` places of each sequence.
  explicit KeyValueCache(std::int64_t capacity) : capacity_(capacity) {}

  std::int64_t length() const { return length_; }  // places so far

  // Adds the next places: k and v are [batch, places, kv_heads * width], of the same batch each time.
  // UsageError when there is no room for them.
  void append(const at::Tensor& k, const at::Tensor& v);

  at::Tensor keys() const { return keys_.narrow(1, 0, length_); }  // of all places so far
  at::Tensor values() const { return values_.narrow(1, 0, length_); }

 private:
  std::int64_t capacity_;
  std::int64_t length_ = 0;
  at::Tensor keys_;  // [batch, capacity, kv_heads * width]
  at::Tensor values_;
};

// Causal attention of the queries of the last q.size(1) places of the cache over all its places; otherwise as
// causal_attention(). Nothing is recorded.
at::Tensor cached_attention(const at::Tensor& q, const KeyValueCache& cache, std::int64_t heads,
                            std::int64_t kv_heads);

}  // namespace lockstep::nn
