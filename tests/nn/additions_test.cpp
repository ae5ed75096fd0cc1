// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/additions.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/nn/embedding.h"
#include "lockstep/nn/linear.h"

namespace lockstep::nn {
namespace {

Parameter parameter_of(const std::vector<std::int64_t>& sizes, at::ScalarType type) {
  at::manual_seed(3);
  return {"p", at::randn(sizes, at::kDouble).to(type).requires_grad_(),
          at::zeros(sizes, type == at::kDouble ? at::kDouble : at::kFloat)};
}

// By our kernels, and by ATen.
class PutOffAdditions : public ::testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Types, PutOffAdditions, ::testing::Values(at::kFloat, at::kBFloat16, at::kDouble));

TEST_P(PutOffAdditions, GiveTheSameGradientsLater) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({4, 6}, at::kDouble).to(GetParam()).requires_grad_();
  const at::Tensor dy = at::randn({4, 5}, at::kDouble).to(GetParam());
  const auto run = [&](Additions* later) {
    Parameter weight = parameter_of({5, 6}, GetParam());
    Parameter bias = parameter_of({5}, GetParam());
    x.mutable_grad() = at::Tensor();
    const at::Tensor y = linear(x, weight, &bias);
    if (later != nullptr) {
      const PutOff put_off(*later);
      torch::autograd::backward({y}, {dy});
    } else {
      torch::autograd::backward({y}, {dy});
    }
    const bool added = weight.gradient.ne(0).any().item<bool>() || bias.gradient.ne(0).any().item<bool>();
    EXPECT_EQ(added, later == nullptr);
    if (later != nullptr) later->run();
    return std::vector<at::Tensor>{x.grad().clone(), weight.gradient, bias.gradient};
  };
  const std::vector<at::Tensor> now = run(nullptr);
  Additions later;
  const std::vector<at::Tensor> put_off = run(&later);
  EXPECT_TRUE(later.empty());
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(now[i].equal(put_off[i])) << i;
}

TEST_P(PutOffAdditions, OfAnEmbeddingRunInTheirOrder) {
  Parameter table = parameter_of({7, 3}, GetParam());
  Parameter places = parameter_of({4, 3}, GetParam());
  const at::Tensor tokens = at::randint(0, 7, {2, 4}, at::kInt);
  Additions first;
  Additions second;
  for (Additions* later : {&second, &first}) {
    const PutOff put_off(*later);
    const at::Tensor rows = embedding(tokens, table, &places);
    torch::autograd::backward({rows}, {at::randn(rows.sizes(), at::kDouble).to(GetParam())});
  }
  EXPECT_FALSE(table.gradient.ne(0).any().item<bool>());
  first.append(std::move(second));
  EXPECT_TRUE(second.empty());
  first.run();
  EXPECT_TRUE(table.gradient.ne(0).any().item<bool>());
  EXPECT_TRUE(places.gradient.ne(0).any().item<bool>());
}

TEST(PutOff, EndsWithItsScope) {
  Additions later;
  { const PutOff put_off(later); }
  int ran = 0;
  add_to_gradients([&] { ++ran; });
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(later.empty());
}

}  // namespace
}  // namespace lockstep::nn
