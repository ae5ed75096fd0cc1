// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/llama/model.h"

#include <memory>

#include <fmt/format.h>

#include "lockstep/model/branch.h"
#include "lockstep/model/declare.h"
#include "lockstep/model/layer_dropout.h"
#include "lockstep/nn/activation.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/dropout.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/rotary.h"

namespace lockstep::model::llama {
namespace {

ParameterSpec token_table(const Config& config) {
  return weight_matrix("model.embed_tokens.weight", config.vocabulary, config.width);
}

class Embedding final : public Block {
 public:
  explicit Embedding(const Config& config) : config_(config) {}

  std::vector<ParameterSpec> parameters() const override { return {token_table(config_)}; }
  at::Tensor forward(const at::Tensor&, const Batch& batch, BlockParameters p) const override {
    return nn::dropout(token_rows(batch, p, {.table = 0, .vocabulary = config_.vocabulary}),
                       {config_.dropout}, batch.samples, batch.lanes());
  }

 private:
  Config config_;
};

class Layer final : public Block {
 public:
  Layer(const Config& config, std::int64_t index, std::shared_ptr<const kernels::RotaryTable> table)
      : config_(config),
        prefix_(fmt::format("model.layers.{}.", index)),
        drop_(dropout_of_layer(config.dropout, index)),
        table_(std::move(table)) {}

  std::vector<ParameterSpec> parameters() const override {
    const std::int64_t width = config_.width;
    const std::int64_t queries = config_.heads * config_.head_width;
    const std::int64_t keys = config_.kv_heads * config_.head_width;
    const std::int64_t ffn = config_.ffn_width;
    const float branch = branch_deviation(config_.layers);
    return {norm_weight(prefix_ + "input_layernorm.weight", width),
            weight_matrix(prefix_ + "self_attn.q_proj.weight", queries, width),
            weight_matrix(prefix_ + "self_attn.k_proj.weight", keys, width),
            weight_matrix(prefix_ + "self_attn.v_proj.weight", keys, width),
            weight_matrix(prefix_ + "self_attn.o_proj.weight", width, queries, branch),
            norm_weight(prefix_ + "post_attention_layernorm.weight", width),
            weight_matrix(prefix_ + "mlp.gate_proj.weight", ffn, width),
            weight_matrix(prefix_ + "mlp.up_proj.weight", ffn, width),
            weight_matrix(prefix_ + "mlp.down_proj.weight", width, ffn, branch)};
  }

  at::Tensor forward(const at::Tensor& hidden, const Batch& batch, BlockParameters p) const override {
    const nn::Lanes lanes = batch.lanes();
    const at::Tensor attended =
        over_lanes(nn::rms_norm(hidden, p.shared(0), config_.norm_epsilon, lanes), batch, p, {.weight = 4},
                   [&](const LaneBranch& lane) { return attend(lane, batch); });
    const at::Tensor middle = hidden.add(nn::dropout(attended, drop_.attention, batch.samples, lanes));
    const at::Tensor fed = over_lanes(nn::rms_norm(middle, p.shared(5), config_.norm_epsilon, lanes), batch,
                                      p, {.weight = 8}, feed);
    return middle.add(nn::dropout(fed, drop_.ffn, batch.samples, lanes));
  }

 private:
  // Of the heads that the lane has.
  at::Tensor attend(const LaneBranch& lane, const Batch& batch) const {
    const at::Tensor q = nn::rotary(lane.linear(lane.x, 1), table_, batch.first_place);
    const at::Tensor k = nn::rotary(lane.linear(lane.x, 2), table_, batch.first_place);
    return nn::causal_attention(q, k, lane.linear(lane.x, 3), q.size(2) / config_.head_width,
                                k.size(2) / config_.head_width, batch.cache);
  }
  static at::Tensor feed(const LaneBranch& lane) {
    return nn::swiglu(lane.linear(lane.x, 6), lane.linear(lane.x, 7));
  }

  Config config_;
  std::string prefix_;
  LayerDropout drop_;
  std::shared_ptr<const kernels::RotaryTable> table_;
};

class FinalNorm final : public Block {
 public:
  explicit FinalNorm(const Config& config) : config_(config) {}

  std::vector<ParameterSpec> parameters() const override {
    return {norm_weight("model.norm.weight", config_.width)};
  }
  at::Tensor forward(const at::Tensor& hidden, const Batch& batch, BlockParameters p) const override {
    return nn::rms_norm(hidden, p.shared(0), config_.norm_epsilon, batch.lanes());
  }

 private:
  Config config_;
};

}  // namespace

Model make(const Config& config) {
  const auto table = std::make_shared<const kernels::RotaryTable>(static_cast<std::size_t>(config.positions),
                                                                  static_cast<std::size_t>(config.head_width),
                                                                  config.rope_theta, config.rope_scaling);
  Model model;
  model.blocks.push_back(std::make_unique<Embedding>(config));
  for (std::int64_t i = 0; i < config.layers; ++i)
    model.blocks.push_back(std::make_unique<Layer>(config, i, table));
  model.blocks.push_back(std::make_unique<FinalNorm>(config));
  model.head = {config.tied ? token_table(config)
                            : weight_matrix("lm_head.weight", config.vocabulary, config.width)};
  return model;
}

}  // namespace lockstep::model::llama
