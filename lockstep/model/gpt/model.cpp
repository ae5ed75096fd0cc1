// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/gpt/model.h"

#include <memory>

#include <fmt/format.h>

#include "lockstep/model/branch.h"
#include "lockstep/model/declare.h"
#include "lockstep/model/layer_dropout.h"
#include "lockstep/nn/activation.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/dropout.h"
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
    const nn::Lanes lanes = batch.lanes();
    return nn::dropout(token_rows(batch, p, {.table = 0, .places = 1, .vocabulary = config_.vocabulary}),
                       {config_.dropout}, batch.samples, lanes);
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
    const nn::Lanes lanes = batch.lanes();
    const at::Tensor attended = over_lanes(
        nn::layer_norm(hidden, p.shared(0), p.shared(1), config_.norm_epsilon, lanes), batch, p,
        {.weight = 4, .bias = 5}, [&](const LaneBranch& lane) { return attend(lane, batch.cache); });
    const at::Tensor middle = hidden.add(nn::dropout(attended, drop_.attention, batch.samples, lanes));
    const at::Tensor fed =
        over_lanes(nn::layer_norm(middle, p.shared(6), p.shared(7), config_.norm_epsilon, lanes), batch, p,
                   {.weight = 10, .bias = 11}, feed);
    return middle.add(nn::dropout(fed, drop_.ffn, batch.samples, lanes));
  }

 private:
  // Of the heads that the lane has.
  at::Tensor attend(const LaneBranch& lane, nn::KeyValueCache* cache) const {
    const at::Tensor qkv = lane.linear(lane.x, 2, 3);
    const std::int64_t width = qkv.size(2) / 3;
    const std::int64_t heads = width / (config_.width / config_.heads);
    return nn::causal_attention(qkv.narrow(2, 0, width), qkv.narrow(2, width, width),
                                qkv.narrow(2, 2 * width, width), heads, heads, cache);
  }
  static at::Tensor feed(const LaneBranch& lane) { return nn::gelu(lane.linear(lane.x, 8, 9)); }

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
  at::Tensor forward(const at::Tensor& hidden, const Batch& batch, BlockParameters p) const override {
    return nn::layer_norm(hidden, p.shared(0), p.shared(1), config_.norm_epsilon, batch.lanes());
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
