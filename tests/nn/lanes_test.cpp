// SPDX-License-Identifier: Apache-2.0
//
// Lanes that one member computes alone. What several members do is in tests/parallel/tensor.
#include "lockstep/nn/lanes.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/bias.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/norm.h"

namespace lockstep::nn {
namespace {

class Member final : public LaneTeam {
 public:
  explicit Member(const LaneShare& share) : share_(share) {}
  LaneShare share() const override { return share_; }
  void all_reduce(const at::Tensor&) const override { ++exchanges; }
  void reduce_scatter(const at::Tensor&) const override { ++exchanges; }
  void all_gather(const at::Tensor&) const override { ++exchanges; }

  mutable int exchanges = 0;

 private:
  LaneShare share_;
};

TEST(Lanes, EveryTokenIsInOneRunAndHeldByOneMember) {
  for (std::int64_t tokens : {0, 1, 3, 4, 5, 7, 8, 99, 1024}) {
    for (int workers : {1, 2, 4, 8}) {
      std::int64_t next = 0;
      for (int worker = 0; worker < workers; ++worker) {
        const Member member(
            {.lanes = 8, .first = worker * (8 / workers), .count = 8 / workers, .divides_tokens = true});
        const Lanes lanes = {&member, tokens};
        std::int64_t held = 0;
        for (int i = 0; i < lanes.here(); ++i) {
          const LaneRun run = lanes.run_here(i);
          EXPECT_EQ(lanes.held().first + run.first, next) << tokens << " tokens, " << workers << " workers";
          EXPECT_LE(run.count, lanes.run());
          next += run.count;
          held += run.count;
        }
        EXPECT_EQ(lanes.held().count, held);
      }
      EXPECT_EQ(next, tokens);
    }
  }
}

TEST(Lanes, RunsDoNotDependOnWhoHoldsTokens) {
  const Member all({.lanes = 4, .first = 2, .count = 2});
  const Member divided({.lanes = 4, .first = 2, .count = 2, .divides_tokens = true});
  const Lanes one = {&all, 99}, other = {&divided, 99};
  EXPECT_EQ(one.held().count, 99);
  EXPECT_EQ(other.held().count, 49);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(one.run_here(i).first, other.held().first + other.run_here(i).first);
    EXPECT_EQ(one.run_here(i).count, other.run_here(i).count);
  }
}

TEST(Lanes, OneLaneIsNone) {
  const Member alone({});
  for (const Lanes& lanes : {Lanes{nullptr, 7}, Lanes{&alone, 7}}) {
    EXPECT_FALSE(lanes.several());
    EXPECT_EQ(lanes.here(), 1);
    EXPECT_EQ(lanes.held().count, 7);
    const at::Tensor x = at::randn({1, 7, 3});
    EXPECT_TRUE(fan_out(x, 1, lanes)[0].is_same(x));
    EXPECT_TRUE(fan_in({x}, lanes).is_same(x));
  }
  EXPECT_EQ(alone.exchanges, 0);
}

TEST(Lanes, FansSumForwardsAndBackwards) {
  for (const bool divides_tokens : {false, true}) {
    const Member member({.lanes = 4, .first = 0, .count = 4, .divides_tokens = divides_tokens});
    const Lanes lanes = {&member, 6};
    at::manual_seed(3);
    const at::Tensor x = divides_tokens ? at::randn({6, 5}) : at::randn({2, 3, 5});
    const at::Tensor input = x.detach().requires_grad_();
    std::vector<at::Tensor> partials;
    for (const at::Tensor& of_lane : fan_out(input, 2, lanes)) {
      EXPECT_EQ(of_lane.sizes(), at::IntArrayRef({2, 3, 5}));
      partials.push_back(of_lane.mul(static_cast<double>(1 << partials.size())));  // 1, 2, 4, 8
    }
    const at::Tensor sum = fan_in(partials, lanes);
    EXPECT_EQ(sum.sizes(), x.sizes());
    EXPECT_TRUE(sum.allclose(x.mul(15)));
    const at::Tensor gradient = at::randn(sum.sizes());
    torch::autograd::backward({sum}, {gradient});
    EXPECT_TRUE(input.grad().allclose(gradient.mul(15)));
    EXPECT_EQ(member.exchanges, divides_tokens ? 4 : 2);
  }
}

Parameter shared_by_two(const at::Tensor& value) {
  return {"p", value.detach().requires_grad_(), {}, {at::zeros({6}), at::zeros({6})}};
}

TEST(Lanes, GradientsOfSharedParametersAreByRunOfTokens) {
  const Member member({.lanes = 4, .first = 2, .count = 2});
  const Lanes lanes = {&member, 10};  // runs of 3, 3, 3 and 1
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 5, 6});
  const at::Tensor gradient = at::randn({2, 5, 6});
  const Parameter bias = shared_by_two(at::randn({6}));
  torch::autograd::backward({add_bias(x, bias, lanes)}, {gradient});
  const at::Tensor rows = gradient.view({10, 6});
  EXPECT_TRUE(bias.by_lane[0].allclose(rows.narrow(0, 6, 3).sum(0)));
  EXPECT_TRUE(bias.by_lane[1].allclose(rows[9]));

  const Parameter weight = shared_by_two(at::randn({6}));
  const at::Tensor input = x.detach().requires_grad_();
  torch::autograd::backward({rms_norm(input, weight, 1e-5F, lanes)}, {gradient});
  const Parameter whole = {"w", weight.value, at::zeros({6})};
  const at::Tensor same = x.detach().requires_grad_();
  torch::autograd::backward({rms_norm(same, whole, 1e-5F)}, {gradient});
  EXPECT_TRUE(input.grad().equal(same.grad())) << "the gradient of the input is that of all tokens";
  const Parameter some = {"w", weight.value, at::zeros({6})};
  torch::autograd::backward({rms_norm(x.view({10, 6}).narrow(0, 6, 3), some, 1e-5F)}, {rows.narrow(0, 6, 3)});
  EXPECT_TRUE(weight.by_lane[0].equal(some.gradient));
}

TEST(Lanes, ASharedParameterHasAGradientForEachLane) {
  const Member member({.lanes = 2, .first = 0, .count = 2});
  Parameter bias = shared_by_two(at::randn({6}));
  bias.by_lane.pop_back();
  EXPECT_THROW(add_bias(at::randn({1, 4, 6}), bias, {&member, 4}), InternalError);
}

TEST(Lanes, AreRefusedWhereThereAreNoKernels) {
  const Member member({.lanes = 2, .first = 0, .count = 2});
  const Parameter bias = shared_by_two(at::randn({6}, at::kDouble));
  EXPECT_THROW(add_bias(at::randn({1, 4, 6}, at::kDouble), bias, {&member, 4}), InternalError);
}

}  // namespace
}  // namespace lockstep::nn
