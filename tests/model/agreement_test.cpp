// SPDX-License-Identifier: Apache-2.0
//
// On the same weights, logits, loss and gradients of our models agree with the plain ones.
#include <functional>

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/model/parameters.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/linear.h"

#include "tests/model/plain.h"
#include "tests/model/values.h"

namespace lockstep::model {
namespace {

Batch some_batch(std::int64_t vocabulary) {
  at::manual_seed(5);
  Batch batch = {at::randint(0, vocabulary, {3, 33}, at::kInt),
                 at::randint(0, vocabulary, {3, 33}, at::kInt)};
  batch.targets[2][7] = -1;
  return batch;
}

struct Outcome {
  at::Tensor logits;
  double loss;
  Weights gradients;
};

Outcome ours(const Model& model, const at::Tensor& values, const Batch& batch, at::ScalarType type) {
  const FlatLayout layout(model);
  const at::Tensor gradients = at::zeros({layout.elements()}, at::kFloat);
  const Parameters parameters(layout, values.to(type), gradients);
  std::vector<BlockPass> passes;
  at::Tensor hidden;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    passes.push_back(forward(*model.blocks[i], hidden, batch, parameters.of_block(i)));
    hidden = passes.back().output.detach();
  }
  const float scale = 1.0F / static_cast<float>(batch.targets.ge(0).sum().item<std::int64_t>());
  const nn::HeadLoss loss = nn::head_loss_with_gradients(hidden, parameters.head(), batch.targets, scale);
  const at::Tensor logits = nn::linear(hidden, parameters.head());
  at::Tensor gradient = loss.x_gradient;
  for (std::size_t i = model.blocks.size(); i-- > 0;) gradient = backward(std::move(passes[i]), gradient);
  Outcome outcome = {logits, loss.losses.to(at::kDouble).sum().item<double>() * scale, {}};
  for (const nn::Parameter& parameter : parameters.all())
    outcome.gradients[parameter.name] = parameter.gradient;
  return outcome;
}

using PlainLogits = std::function<at::Tensor(const Weights&, const Batch&)>;

Outcome plain(const Model& model, const at::Tensor& values, const Batch& batch,
              const PlainLogits& logits_of) {
  const FlatLayout layout(model);
  Weights weights;
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const auto [first, count] = layout.places()[i];
    weights[layout.specs()[i].name] =
        values.narrow(0, first, count).view(layout.specs()[i].shape).to(at::kDouble).requires_grad_();
  }
  const at::Tensor logits = logits_of(weights, batch);
  const at::Tensor loss = plain_loss(logits, batch.targets);
  torch::autograd::backward({loss}, {});
  Outcome outcome = {logits.detach(), loss.item<double>(), {}};
  for (const auto& [name, weight] : weights) outcome.gradients[name] = weight.grad();
  return outcome;
}

// The largest error, as a share of the largest value that is expected.
double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const double error = found.to(at::kDouble).sub(expected).abs().max().item<double>();
  return error / expected.abs().max().item<double>();
}

void expect_agreement(const Model& model, const Batch& batch, const PlainLogits& logits_of) {
  const at::Tensor values = some_values(FlatLayout(model));
  const Outcome expected = plain(model, values, batch, logits_of);
  for (const auto& [type, limit] : {std::pair{at::kFloat, 1e-4}, {at::kBFloat16, 6e-2}}) {
    SCOPED_TRACE(c10::toString(type));
    const Outcome found = ours(model, values, batch, type);
    EXPECT_LE(relative_error(found.logits, expected.logits), limit);
    EXPECT_NEAR(found.loss, expected.loss, limit * expected.loss);
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LE(relative_error(found.gradients.at(name), gradient), limit) << name;
    }
  }
}

TEST(Agreement, Gpt) {
  const gpt::Config config = {
      .layers = 2, .width = 48, .heads = 3, .ffn_width = 96, .vocabulary = 101, .positions = 40};
  expect_agreement(
      gpt::make(config), some_batch(config.vocabulary),
      [&](const Weights& weights, const Batch& batch) { return plain_gpt_logits(config, weights, batch); });
}

TEST(Agreement, Llama) {
  for (bool tied : {false, true}) {
    // Of the frequencies one stays, one is mixed, and the others become slower.
    const kernels::RotaryScaling stretched = {
        .factor = 4, .low_freq_factor = 0.5, .high_freq_factor = 2, .original_length = 20};
    const llama::Config config = {.layers = 2,
                                  .width = 48,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_width = 12,
                                  .ffn_width = 80,
                                  .vocabulary = 101,
                                  .positions = 40,
                                  .rope_scaling = tied ? std::optional(stretched) : std::nullopt,
                                  .tied = tied};
    expect_agreement(llama::make(config), some_batch(config.vocabulary),
                     [&](const Weights& weights, const Batch& batch) {
                       return plain_llama_logits(config, weights, batch);
                     });
  }
}

TEST(Agreement, Mlp) {
  const mlp::Config config = {.inputs = 13, .layers = 3, .width = 48, .classes = 7};
  Batch batch;
  at::manual_seed(5);
  batch.features = at::randn({33, config.inputs});
  batch.targets = at::randint(0, config.classes, {33}, at::kInt);
  expect_agreement(mlp::make(config), batch, [&](const Weights& weights, const Batch& same) {
    return plain_mlp_logits(config, weights, same);
  });
}

}  // namespace
}  // namespace lockstep::model
