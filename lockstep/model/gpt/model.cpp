// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/gpt/model.h"

#include <memory>

#include <fmt/format.h>

#include "lockstep/model/declare.h"
#include "lockstep/model/layer_dropout.h"
#include "lockstep/nn/activation.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/dropout.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"

namespace lockstep::model::gpt {
namespace {

ParameterSpec token_table(const Config& config) {
  return weight_matrix("wte.weight", config.vocabulary, config.width);
}

class Embedding final : public Block {
 public:
  explicit Embedding(const Config& config) : config_(config) {}

  std::vector<ParameterSpec> parameters() const override {
    return {token_table(config_), weight_matrix("wpe.weight", config_.positions, config_.width, 0.01F)};
  }
  at::Tensor forward(const at::Tensor&, const Batch& batch, BlockParameters p) const override {
    return nn::dropout(nn::embedding(batch.tokens, *p[0], p[1], batch.first_place), {config_.dropout},
                       batch.samples);
  }

 private:
  Config config_;
};

class Layer final : public Block {
 public:
  Layer(const Config& config, std::int64_t index)
      : config_(config),
        prefix_(fmt::format("h.{}.", index)),
        drop_(dropout_of_layer(config.dropout, index)) {}

  std::vector<ParameterSpec> parameters() const override {
    const std::int64_t width = config_.width;
    const std::int64_t ffn = config_.ffn_width;
    const float branch = branch_deviation(config_.layers);
    return {norm_weight(prefix_ + "ln_1.weight", width),
            bias(prefix_ + "ln_1.bias", width),
            weight_matrix(prefix_ + "attn.c_attn.weight", 3 * width, width),
            bias(prefix_ + "attn.c_attn.bias", 3 * width),
            weight_matrix(prefix_ + "attn.c_proj.weight", width, width, branch),
            bias(prefix_ + "attn.c_proj.bias", width),
            norm_weight(prefix_ + "ln_2.weight", width),
            bias(prefix_ + "ln_2.bias", width),
            weight_matrix(prefix_ + "mlp.c_fc.weight", ffn, width),
            bias(prefix_ + "mlp.c_fc.bias", ffn),
            weight_matrix(prefix_ + "mlp.c_proj.weight", width, ffn, branch),
            bias(prefix_ + "mlp.c_proj.bias", width)};
  }

  at::Tensor forward(const at::Tensor& hidden, const Batch& batch, BlockParameters p) const override {
    const std::int64_t width = config_.width;
    const at::Tensor normed = nn::layer_norm(hidden, *p[0], *p[1], config_.norm_epsilon);
    const at::Tensor qkv = nn::linear(normed, *p[2], p[3]);
    const at::Tensor mixed =
        nn::causal_attention(qkv.narrow(2, 0, width), qkv.narrow(2, width, width),
                             qkv.narrow(2, 2 * width, width), config_.heads, config_.heads, batch.cache);
    const at::Tensor middle =
        hidden.add(nn::dropout(nn::linear(mixed, *p[4], p[5]), drop_.attention, batch.samples));
    const at::Tensor wide =
        nn::linear(nn::layer_norm(middle, *p[6], *p[7], config_.norm_epsilon), *p[8], p[9]);
    return middle.add(nn::dropout(nn::linear(nn::gelu(wide), *p[10], p[11]), drop_.ffn, batch.samples));
  }

 private:
  Config config_;
  std::string prefix_;
  LayerDropout drop_;
};

class FinalNorm final : public Block {
 public:
  explicit FinalNorm(const Config& config) : config_(config) {}

  std::vector<ParameterSpec> parameters() const override {
    return {norm_weight("ln_f.weight", config_.width), bias("ln_f.bias", config_.width)};
  }
  at::Tensor forward(const at::Tensor& hidden, const Batch&, BlockParameters p) const override {
    return nn::layer_norm(hidden, *p[0], *p[1], config_.norm_epsilon);
  }

 private:
  Config config_;
};

}  // namespace

Model make(const Config& config) {
  Model model;
  model.blocks.push_back(std::make_unique<Embedding>(config));
  for (std::int64_t i = 0; i < config.layers; ++i) model.blocks.push_back(std::make_unique<Layer>(config, i));
  model.blocks.push_back(std::make_unique<FinalNorm>(config));
  model.head = {token_table(config)};
  return model;
}

}  // namespace lockstep::model::gpt
