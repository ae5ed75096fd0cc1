// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/mlp/model.h"

#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "lockstep/model/declare.h"
#include "lockstep/nn/activation.h"
#include "lockstep/nn/dropout.h"
#include "lockstep/nn/linear.h"

namespace lockstep::model::mlp {
namespace {

class Layer final : public Block {
 public:
  Layer(const Config& config, std::int64_t index)
      : inputs_(index == 0 ? config.inputs : config.width),
        width_(config.width),
        prefix_(fmt::format("layers.{}.", index)),
        drop_({config.dropout, static_cast<std::uint64_t>(index)}) {}

  std::vector<ParameterSpec> parameters() const override {
    // Keeps the size of what goes through (K. He et al. 2015, arXiv:1502.01852).
    const float deviation = std::sqrt(2.0F / static_cast<float>(inputs_));
    return {weight_matrix(prefix_ + "weight", width_, inputs_, deviation), bias(prefix_ + "bias", width_)};
  }

  at::Tensor forward(const at::Tensor& hidden, const Batch& batch, BlockParameters p) const override {
    const at::Tensor in = hidden.defined() ? hidden : batch.features.to(p[0]->value.options());
    return nn::dropout(nn::gelu(nn::linear(in, *p[0], p[1])), drop_, batch.samples);
  }

 private:
  std::int64_t inputs_;
  std::int64_t width_;
  std::string prefix_;
  nn::DropoutPlace drop_;
};

}  // namespace

Model make(const Config& config) {
  Model model;
  for (std::int64_t i = 0; i < config.layers; ++i) model.blocks.push_back(std::make_unique<Layer>(config, i));
  model.head = {weight_matrix("head.weight", config.classes, config.width)};
  return model;
}

}  // namespace lockstep::model::mlp
