// SPDX-License-Identifier: Apache-2.0
#include "tests/model/plain.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/torch.h>

namespace lockstep::model {
namespace {

// [batch, length, heads * width] -> [batch, heads, length, width]
at::Tensor by_head(const at::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const std::int64_t length = q.size(2);
  at::Tensor scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(3)));
  scores = scores + at::full({length, length}, -INFINITY, q.options()).triu(1);
  const at::Tensor mixed = scores.softmax(-1).matmul(v);
  return mixed.transpose(1, 2).reshape({q.size(0), length, -1});
}

at::Tensor rms(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * (x.pow(2).mean(-1, true) + epsilon).rsqrt() * weight;
}

// The stretched frequencies of LLaMA 3.1; between its two limits `smooth` is within 0 and 1.
at::Tensor scaled(const at::Tensor& frequencies, const kernels::RotaryScaling& by) {
  const at::Tensor turns = by.original_length * frequencies / (2 * M_PI);
  const at::Tensor smooth =
      ((turns - by.low_freq_factor) / (by.high_freq_factor - by.low_freq_factor)).clamp(0, 1);
  return at::lerp(frequencies / by.factor, frequencies, smooth);
}

at::Tensor turn(const at::Tensor& x, const llama::Config& config) {
  const std::int64_t length = x.size(2);
  const std::int64_t half = x.size(3) / 2;
  at::Tensor frequencies =
      at::pow(config.rope_theta, -at::arange(0, half, x.options()) / static_cast<double>(half));
  if (config.rope_scaling) frequencies = scaled(frequencies, *config.rope_scaling);
  const at::Tensor angles = at::outer(at::arange(0, length, x.options()), frequencies);
  const at::Tensor doubled = at::cat({angles, angles}, 1);
  const at::Tensor swapped = at::cat({-x.narrow(3, half, half), x.narrow(3, 0, half)}, 3);
  return x * doubled.cos() + swapped * doubled.sin();
}

}  // namespace

at::Tensor plain_loss(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor wanted = targets.reshape({-1}).to(at::kLong);
  return torch::nn::functional::cross_entropy(logits.reshape({-1, logits.size(-1)}),
                                              at::where(wanted < 0, at::full_like(wanted, -100), wanted));
}

at::Tensor plain_gpt_logits(const gpt::Config& config, const Weights& w, const Batch& batch) {
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {config.width}, w.at(name + ".weight"), w.at(name + ".bias"),
                          config.norm_epsilon);
  };
  const auto dense = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
  };
  at::Tensor x = at::embedding(w.at("wte.weight"), batch.tokens.to(at::kLong)) +
                 w.at("wpe.weight").narrow(0, 0, batch.tokens.size(1));
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string h = fmt::format("h.{}.", i);
    const auto parts = dense(norm(x, h + "ln_1"), h + "attn.c_attn").chunk(3, -1);
    x = x + dense(attend(by_head(parts[0], config.heads), by_head(parts[1], config.heads),
                         by_head(parts[2], config.heads)),
                  h + "attn.c_proj");
    x = x + dense(at::gelu(dense(norm(x, h + "ln_2"), h + "mlp.c_fc"), "tanh"), h + "mlp.c_proj");
  }
  return norm(x, "ln_f").matmul(w.at("wte.weight").t());
}

at::Tensor plain_mlp_logits(const mlp::Config& config, const Weights& w, const Batch& batch) {
  at::Tensor x = batch.features.to(w.at("head.weight").scalar_type());
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    x = at::gelu(at::linear(x, w.at(layer + "weight"), w.at(layer + "bias")), "tanh");
  }
  return x.matmul(w.at("head.weight").t());
}

at::Tensor plain_llama_logits(const llama::Config& config, const Weights& w, const Batch& batch) {
  at::Tensor x = at::embedding(w.at("model.embed_tokens.weight"), batch.tokens.to(at::kLong));
  const std::int64_t group = config.heads / config.kv_heads;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string h = fmt::format("model.layers.{}.", i);
    const auto dense = [&](const at::Tensor& in, const std::string& name) {
      return at::linear(in, w.at(h + name + ".weight"));
    };
    const at::Tensor in = rms(x, w.at(h + "input_layernorm.weight"), config.norm_epsilon);
    const at::Tensor q = turn(by_head(dense(in, "self_attn.q_proj"), config.heads), config);
    const at::Tensor k = turn(by_head(dense(in, "self_attn.k_proj"), config.kv_heads), config);
    const at::Tensor v = by_head(dense(in, "self_attn.v_proj"), config.kv_heads);
    x = x +
        dense(attend(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)), "self_attn.o_proj");
    const at::Tensor middle = rms(x, w.at(h + "post_attention_layernorm.weight"), config.norm_epsilon);
    x = x + dense(at::silu(dense(middle, "mlp.gate_proj")) * dense(middle, "mlp.up_proj"), "mlp.down_proj");
  }
  x = rms(x, w.at("model.norm.weight"), config.norm_epsilon);
  return x.matmul(w.at(config.tied ? "model.embed_tokens.weight" : "lm_head.weight").t());
}

}  // namespace lockstep::model
