// SPDX-License-Identifier: Apache-2.0
//
// The optimizers against those of libtorch, on the same gradients.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "lockstep/kernels/compute/update/optimizers.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kCount = 1003;

std::span<float> values_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

// `plain` has one parameter, whose values ours begins with.
void expect_same(torch::optim::Optimizer& plain,
                 const std::function<void(std::uint64_t step, const kernels::Parameters&)>& ours) {
  at::Tensor& theirs = plain.parameters().front();
  const at::Tensor mine = theirs.detach().clone();
  for (std::uint64_t step = 1; step <= 7; ++step) {
    const at::Tensor gradient = at::randn({kCount});
    theirs.mutable_grad() = gradient.clone();
    plain.step();
    ours(step, {.master = values_of(mine), .gradient = values_of(gradient)});
    ASSERT_TRUE(at::allclose(mine, theirs.detach(), 1e-5, 1e-6)) << "step " << step;
  }
}

std::vector<at::Tensor> one_parameter() {
  at::manual_seed(5);
  return {at::randn({kCount}).set_requires_grad(true)};
}

TEST(OptimizerAgreement, Sgd) {
  for (const float momentum : {0.0F, 0.9F}) {
    torch::optim::SGD plain(one_parameter(),
                            torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(0.01));
    std::vector<float> state(kCount);
    expect_same(plain, [&](std::uint64_t, const kernels::Parameters& parameters) {
      kernels::sgd({.learning_rate = 0.1F, .momentum = momentum, .weight_decay = 0.01F}, parameters, state);
    });
  }
}

TEST(OptimizerAgreement, AdamW) {
  torch::optim::AdamW plain(one_parameter(),
                            torch::optim::AdamWOptions(0.01).betas({0.9, 0.95}).weight_decay(0.1));
  std::vector<float> mean(kCount);
  std::vector<float> square(kCount);
  expect_same(plain, [&](std::uint64_t step, const kernels::Parameters& parameters) {
    kernels::adamw({.learning_rate = 0.01F, .weight_decay = 0.1F, .step = step}, parameters, mean, square);
  });
}

}  // namespace
}  // namespace lockstep::train
