// SPDX-License-Identifier: Apache-2.0
//
// Every function twice: in fp32 by our kernels, and in fp64, which only the plain ATen path computes. Outputs
// and all gradients must agree.
#include <functional>

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/nn/activation.h"
#include "lockstep/nn/attention.h"
#include "lockstep/nn/bias.h"
#include "lockstep/nn/dropout.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/norm.h"
#include "lockstep/nn/rotary.h"

namespace lockstep::nn {
namespace {

using Inputs = std::vector<at::Tensor>;
using Parameters = std::vector<Parameter>;

struct Case {
  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::vector<std::int64_t>> parameters;
  std::function<at::Tensor(const Inputs&, const Parameters&)> function;
};

struct Outcome {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  // of the inputs, then of the parameters
};

at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, std::int64_t seed) {
  at::manual_seed(static_cast<std::uint64_t>(seed));
  return at::randn(sizes, at::kDouble).to(type);
}

Outcome run(const Case& what, at::ScalarType type) {
  std::int64_t seed = 0;
  Inputs inputs;
  for (const auto& sizes : what.inputs) inputs.push_back(random_tensor(sizes, type, ++seed).requires_grad_());
  Parameters parameters;
  const at::ScalarType gradient_type = type == at::kDouble ? at::kDouble : at::kFloat;
  for (const auto& sizes : what.parameters) {
    parameters.push_back(
        {"p", random_tensor(sizes, type, ++seed).requires_grad_(), at::zeros(sizes, gradient_type)});
  }
  Outcome outcome;
  const at::Tensor output = what.function(inputs, parameters);
  torch::autograd::backward({output}, {random_tensor(output.sizes(), type, 99)});
  outcome.output = output.detach();
  for (const at::Tensor& input : inputs) outcome.gradients.push_back(input.grad());
  for (const Parameter& parameter : parameters) {
    EXPECT_FALSE(parameter.value.grad().defined()) << "autograd must not hold gradients of parameters";
    outcome.gradients.push_back(parameter.gradient);
  }
  return outcome;
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor difference = found.to(at::kDouble).sub(expected.to(at::kDouble)).abs().max();
  return difference.item<double>() / std::max(1e-30, expected.abs().max().item<double>());
}

void expect_both_paths_agree(const Case& what) {
  const Outcome expected = run(what, at::kDouble);
  for (const auto& [type, limit] : {std::pair{at::kFloat, 1e-5}, {at::kBFloat16, 3e-2}, {at::kHalf, 4e-3}}) {
    SCOPED_TRACE(c10::toString(type));
    const Outcome found = run(what, type);
    EXPECT_EQ(found.output.scalar_type(), type);
    EXPECT_LE(relative_error(found.output, expected.output), limit);
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    for (std::size_t i = 0; i < found.gradients.size(); ++i) {
      EXPECT_LE(relative_error(found.gradients[i], expected.gradients[i]), limit) << "gradient " << i;
    }
  }
}

TEST(Functions, Linear) {
  expect_both_paths_agree({{{2, 5, 7}}, {{3, 7}, {3}}, [](const Inputs& in, const Parameters& p) {
                             return linear(in[0], p[0], &p[1]);
                           }});
  expect_both_paths_agree(
      {{{4, 64}}, {{80, 64}}, [](const Inputs& in, const Parameters& p) { return linear(in[0], p[0]); }});
}

TEST(Functions, LinearOfAPartOfATensor) {
  expect_both_paths_agree({{{3, 4, 12}}, {{5, 6}}, [](const Inputs& in, const Parameters& p) {
                             return linear(in[0].narrow(2, 3, 6), p[0]);
                           }});
  expect_both_paths_agree(
      {{{6, 4}}, {{5, 6}}, [](const Inputs& in, const Parameters& p) { return linear(in[0].t(), p[0]); }});
}

TEST(Functions, Norms) {
  expect_both_paths_agree({{{2, 5, 24}}, {{24}, {24}}, [](const Inputs& in, const Parameters& p) {
                             return layer_norm(in[0], p[0], p[1], 1e-5F);
                           }});
  expect_both_paths_agree({{{2, 5, 24}}, {{24}}, [](const Inputs& in, const Parameters& p) {
                             return rms_norm(in[0], p[0], 1e-5F);
                           }});
}

TEST(Functions, Activations) {
  expect_both_paths_agree(
      {{{3, 40}}, {}, [](const Inputs& in, const Parameters&) { return nn::gelu(in[0]); }});
  expect_both_paths_agree(
      {{{3, 40}, {3, 40}}, {}, [](const Inputs& in, const Parameters&) { return swiglu(in[0], in[1]); }});
}

TEST(Functions, Attention) {
  expect_both_paths_agree({{{2, 9, 48}, {2, 9, 16}, {2, 9, 16}}, {}, [](const Inputs& in, const Parameters&) {
                             return causal_attention(in[0], in[1], in[2], 6, 2);
                           }});
}

TEST(Functions, AttentionOfPartsOfOneTensor) {
  expect_both_paths_agree({{{2, 9, 48}}, {}, [](const Inputs& in, const Parameters&) {
                             return causal_attention(in[0].narrow(2, 0, 16), in[0].narrow(2, 16, 16),
                                                     in[0].narrow(2, 32, 16), 2, 2);
                           }});
}

TEST(Functions, Rotary) {
  const auto table = std::make_shared<const kernels::RotaryTable>(32, 8, 10000.0);
  expect_both_paths_agree(
      {{{2, 9, 24}}, {}, [&](const Inputs& in, const Parameters&) { return rotary(in[0], table, 5); }});
}

TEST(Functions, Embedding) {
  at::manual_seed(3);
  const at::Tensor tokens = at::randint(0, 11, {2, 9}, at::kInt);
  expect_both_paths_agree({{}, {{11, 16}, {20, 16}}, [&](const Inputs&, const Parameters& p) {
                             return embedding(tokens, p[0], &p[1], 4);
                           }});
}

TEST(Functions, WhatIsAddedToSums) {
  const Lanes one = {.tokens = 10};
  for (const auto& sizes : {std::vector<std::int64_t>{2, 5, 24}, {10, 24}}) {
    expect_both_paths_agree(
        {{sizes}, {{24}}, [&](const Inputs& in, const Parameters& p) { return add_bias(in[0], p[0], one); }});
    expect_both_paths_agree({{sizes}, {{9, 24}}, [&](const Inputs& in, const Parameters& p) {
                               return add_places(in[0], p[0], {.length = 5, .first = 3}, one);
                             }});
  }
  expect_both_paths_agree({{{2, 5, 24}}, {{9, 12}}, [&](const Inputs& in, const Parameters& p) {
                             return add_places(in[0].narrow(2, 3, 12), p[0], {.length = 5}, one);
                           }});
}

TEST(Functions, Dropout) {
  const Samples samples = {.seed = 3, .numbers = {7, 1'000'000, 8}};
  for (const auto& sizes : {std::vector<std::int64_t>{3, 9, 24}, {3, 50}}) {
    expect_both_paths_agree({{sizes}, {}, [&](const Inputs& in, const Parameters&) {
                               return dropout(in[0], {0.3F, 2, 1}, samples);
                             }});
  }
  expect_both_paths_agree({{{3, 4, 24}}, {}, [&](const Inputs& in, const Parameters&) {
                             return dropout(in[0].narrow(2, 3, 12), {0.3F, 2, 1}, samples);
                           }});
}

TEST(Dropout, DropsTheShareAndKeepsTheExpectation) {
  const at::Tensor ones = at::ones({4, 100, 100});
  const at::Tensor out = dropout(ones, {0.25F}, {.seed = 1, .numbers = {0, 1, 2, 3}});
  EXPECT_EQ(out.eq(0).logical_or(out.eq(1.0F / 0.75F)).sum().item<std::int64_t>(), out.numel());
  // Four standard deviations of 40000 draws.
  EXPECT_NEAR(out.eq(0).to(at::kDouble).mean().item<double>(), 0.25, 4 * 0.0022);
  EXPECT_NEAR(out.to(at::kDouble).mean().item<double>(), 1.0, 4 * 0.0029);
}

TEST(Dropout, IsNothingWithoutProbabilityOrSamples) {
  const at::Tensor x = at::ones({2, 8});
  EXPECT_TRUE(dropout(x, {0.0F}, {.seed = 1, .numbers = {0, 1}}).is_same(x));
  EXPECT_TRUE(dropout(x, {0.5F}, {}).is_same(x));
}

TEST(Dropout, AMaskBelongsToItsSampleWhateverTheBatch) {
  const auto masks = [](std::uint64_t seed, std::vector<std::uint64_t> numbers, std::uint64_t layer,
                        std::uint64_t place) {
    const at::Tensor ones = at::ones({static_cast<std::int64_t>(numbers.size()), 5, 16});
    return dropout(ones, {0.5F, layer, place}, {seed, std::move(numbers)});
  };
  const at::Tensor together = masks(1, {4, 5, 6, 7}, 2, 0);
  EXPECT_TRUE(at::cat({masks(1, {4}, 2, 0), masks(1, {5, 6}, 2, 0), masks(1, {7}, 2, 0)}).equal(together));
  EXPECT_TRUE(masks(1, {7, 6, 5, 4}, 2, 0).flip({0}).equal(together));
  for (const at::Tensor& other :
       {masks(2, {4, 5, 6, 7}, 2, 0), masks(1, {5, 6, 7, 8}, 2, 0), masks(1, {4, 5, 6, 7}, 3, 0),
        masks(1, {4, 5, 6, 7}, 2, 1), masks(1, {4 + (1ULL << 32), 5, 6, 7}, 2, 0)}) {
    EXPECT_FALSE(other[0].equal(together[0]));
  }
}

// The loss is not a function of autograd: it brings its gradients along.
TEST(Functions, HeadLoss) {
  at::manual_seed(3);
  at::Tensor targets = at::randint(0, 50, {2, 9}, at::kInt);
  targets[1][3] = -1;
  const auto both = [&](at::ScalarType type) {
    const Parameter weight = {"w", random_tensor({50, 16}, type, 2),
                              at::zeros({50, 16}, type == at::kDouble ? at::kDouble : at::kFloat)};
    const at::Tensor x = random_tensor({2, 9, 16}, type, 1);
    HeadLoss loss = head_loss_with_gradients(x, weight, targets, 0.125F);
    EXPECT_TRUE(head_loss(x, weight, targets).equal(loss.losses));
    return std::vector<at::Tensor>{loss.losses, loss.x_gradient, weight.gradient};
  };
  const std::vector<at::Tensor> expected = both(at::kDouble);
  EXPECT_EQ(expected[0].numel(), 18);
  EXPECT_EQ(expected[0][12].item<double>(), 0.0);
  for (const auto& [type, limit] : {std::pair{at::kFloat, 1e-5}, {at::kBFloat16, 3e-2}, {at::kHalf, 4e-3}}) {
    const std::vector<at::Tensor> found = both(type);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(relative_error(found[i], expected[i]), limit) << i;
  }
}

}  // namespace
}  // namespace lockstep::nn
