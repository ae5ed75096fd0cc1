// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/attention.h"

#include <cmath>
#include <limits>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/nn/function.h"

namespace lockstep::nn {
namespace {

kernels::AttentionShape shape_of(const at::Tensor& q, std::int64_t heads, std::int64_t kv_heads) {
  const std::int64_t width = q.size(2) / heads;
  return {.batch = static_cast<std::size_t>(q.size(0)),
          .length = static_cast<std::size_t>(q.size(1)),
          .heads = static_cast<std::size_t>(heads),
          .kv_heads = static_cast<std::size_t>(kv_heads),
          .width = static_cast<std::size_t>(width),
          .scale = 1.0F / std::sqrt(static_cast<float>(width))};
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, std::int64_t heads, std::int64_t kv_heads) {
    const at::Tensor queries = as_rows(q);
    const at::Tensor keys = as_rows(k);
    const at::Tensor values = as_rows(v);
    at::Tensor out = at::empty(q.sizes(), q.options());
    const at::Tensor log_sums = at::empty({q.size(0), q.size(1), heads}, q.options().dtype(at::kFloat));
    kernels::attention_forward(shape_of(q, heads, kv_heads),
                               {matrix_of(queries), matrix_of(keys), matrix_of(values)}, matrix_of(out),
                               floats_of(log_sums));
    context->save_for_backward({queries, keys, values, out, log_sums});
    context->saved_data["heads"] = heads;
    context->saved_data["kv_heads"] = kv_heads;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& q = saved[0];
    const kernels::AttentionShape shape =
        shape_of(q, context->saved_data["heads"].toInt(), context->saved_data["kv_heads"].toInt());
    const at::Tensor dout = as_rows(gradients[0]);
    const at::Tensor dq = at::empty(q.sizes(), q.options());
    const at::Tensor dk = at::empty(saved[1].sizes(), q.options());
    const at::Tensor dv = at::empty(saved[2].sizes(), q.options());
    kernels::attention_backward(shape, {matrix_of(q), matrix_of(saved[1]), matrix_of(saved[2])},
                                matrix_of(saved[3]), matrix_of(dout), floats_of(saved[4]),
                                {matrix_of(dq), matrix_of(dk), matrix_of(dv)});
    return {dq, dk, dv, {}, {}};
  }
};

// For every other device: all scores at once.
at::Tensor attention_by_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             std::int64_t heads, std::int64_t kv_heads) {
  const std::int64_t batch = q.size(0);
  const std::int64_t length = q.size(1);
  const std::int64_t width = q.size(2) / heads;
  const auto split = [&](const at::Tensor& x, std::int64_t count) {
    at::Tensor by_head = x.reshape({batch, length, count, width}).transpose(1, 2);
    return count == heads ? by_head : by_head.repeat_interleave(heads / count, 1);
  };
  const at::Tensor scores =
      split(q, heads).matmul(split(k, kv_heads).transpose(-1, -2)).div(std::sqrt(static_cast<double>(width)));
  const at::Tensor later = at::ones({length, length}, q.options().dtype(at::kBool)).triu(1);
  const at::ScalarType wide = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor weights = scores.masked_fill(later, -std::numeric_limits<double>::infinity())
                                 .softmax(-1, wide)
                                 .to(q.scalar_type());
  return weights.matmul(split(v, kv_heads)).transpose(1, 2).reshape({batch, length, heads * width});
}

}  // namespace

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, std::int64_t heads,
                            std::int64_t kv_heads, KeyValueCache* cache) {
  LOCKSTEP_CHECK(q.dim() == 3 && q.size(2) % heads == 0 && heads % kv_heads == 0);
  if (cache != nullptr) {
    cache->append(k, v);
    // Otherwise nothing came before, and the usual way is the fastest.
    if (cache->length() > q.size(1)) return cached_attention(q, *cache, heads, kv_heads);
  }
  if (!has_kernels(q)) return attention_by_aten(q, k, v, heads, kv_heads);
  return Attention::apply(q, k, v, heads, kv_heads);
}

}  // namespace lockstep::nn
