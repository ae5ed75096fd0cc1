// SPDX-License-Identifier: Apache-2.0
//
// Lanes that one member computes alone. What several members do is in tests/parallel/tensor.
#include "lockstep/nn/lanes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/bias.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/linear_sum.h"
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
  std::unique_ptr<LaneSum> start_all_reduce(const at::Tensor&) const override { return start("all"); }
  std::unique_ptr<LaneSum> start_reduce_scatter(const at::Tensor&) const override { return start("rows"); }
  std::unique_ptr<LaneSum> start_reduce(const at::Tensor& values, int lane) const override {
    return start("lane " + std::to_string(lane) + " of " + std::to_string(values.size(0)));
  }

  mutable int exchanges = 0;
  mutable std::vector<std::string> started = {};
  mutable int under_way = 0;
  // What happens while it is waited for.
  std::function<void()> when_waiting = [] {};
  // How many may be started before one fails.
  int limit = 1000;

 private:
  struct Sum final : LaneSum {
    explicit Sum(const Member& of) : member(of) { ++member.under_way; }
    ~Sum() override { --member.under_way; }
    void wait() override { member.when_waiting(); }
    const Member& member;
  };

  std::unique_ptr<LaneSum> start(std::string what) const {
    if (static_cast<int>(started.size()) == limit) throw std::runtime_error("no more");
    started.push_back(std::move(what));
    return std::make_unique<Sum>(*this);
  }

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
    const Fan fan = fan_out(x, 1, lanes);
    EXPECT_TRUE(fan.inputs[0].is_same(x));
    EXPECT_EQ(fan.additions, nullptr);
  }
  EXPECT_EQ(alone.exchanges, 0);
}

TEST(Lanes, PiecesAreAllTokensEachInTheRunOfItsLane) {
  for (const std::int64_t tokens : {0, 1, 255, 511, 512, 513, 1021, 1024, 1041, 4099, 65536}) {
    for (const int lanes : {1, 2, 4, 8, 16}) {
      SCOPED_TRACE(std::to_string(tokens) + " tokens, " + std::to_string(lanes) + " lanes");
      std::vector<LanePiece> pieces = lane_pieces(tokens, lanes);
      const bool whole = pieces.size() == 1;
      EXPECT_LE(pieces.size(), static_cast<std::size_t>(std::max(8, lanes)));
      EXPECT_EQ(whole, lanes == 1 || lane_run(tokens, lanes, 0).count < 256);
      for (std::size_t i = 0; i < pieces.size() && !whole; ++i) {
        const LaneRun run = lane_run(tokens, lanes, pieces[i].lane);
        const LaneRun piece = pieces[i].tokens;
        EXPECT_GE(piece.first, run.first);
        EXPECT_LE(piece.first + piece.count, run.first + run.count);
        EXPECT_TRUE(i == 0 || pieces[i].lane != pieces[i - 1].lane);
      }
      std::sort(pieces.begin(), pieces.end(),
                [](const auto& a, const auto& b) { return a.tokens.first < b.tokens.first; });
      std::int64_t next = 0;
      for (const LanePiece& piece : pieces) {
        EXPECT_EQ(piece.tokens.first, next);
        next += piece.tokens.count;
      }
      EXPECT_EQ(next, tokens);
    }
  }
}

// A branch of two linear functions, which one member computes in `share.count` lanes.
struct Branch {
  Branch(const LaneShare& share, std::int64_t tokens) : member(share), lanes{&member, tokens} {
    at::manual_seed(3);
    x = at::randn({tokens, kWidth}).requires_grad_();
    for (int i = 0; i < share.count; ++i) {
      first.push_back({"first", at::randn({kInner, kWidth}).requires_grad_(), at::zeros({kInner, kWidth})});
      last.push_back({"last", at::randn({kWidth, kInner}).requires_grad_(), at::zeros({kWidth, kInner})});
    }
  }

  at::Tensor compute() {
    const Fan fan = fan_out(x, 1, lanes);
    additions = fan.additions;
    std::vector<at::Tensor> inputs;
    std::vector<const Parameter*> weights;
    for (std::size_t i = 0; i < fan.inputs.size(); ++i) {
      EXPECT_EQ(fan.inputs[i].sizes(), at::IntArrayRef({1, lanes.tokens, kWidth}));
      inputs.push_back(linear(fan.inputs[i], first[i], nullptr, fan.additions));
      weights.push_back(&last[i]);
    }
    return linear_sum({inputs, weights, fan.additions}, lanes);
  }

  // What autograd makes of the same in one piece.
  void expect_like_autograd(const at::Tensor& sum, const at::Tensor& gradient) const {
    const at::Tensor input = x.detach().requires_grad_();
    at::Tensor expected;
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < first.size(); ++i) {
      leaves.push_back(first[i].value.detach().requires_grad_());
      leaves.push_back(last[i].value.detach().requires_grad_());
      const at::Tensor of_lane = input.matmul(leaves[2 * i].t()).matmul(leaves[2 * i + 1].t());
      expected = expected.defined() ? expected.add(of_lane) : of_lane;
    }
    EXPECT_TRUE(sum.view(expected.sizes()).allclose(expected, 1e-4, 1e-4));
    torch::autograd::backward({expected}, {gradient.view(expected.sizes())});
    EXPECT_TRUE(x.grad().allclose(input.grad(), 1e-4, 1e-3));
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_TRUE(first[i].gradient.allclose(leaves[2 * i].grad(), 1e-4, 1e-2));
      EXPECT_TRUE(last[i].gradient.allclose(leaves[2 * i + 1].grad(), 1e-4, 1e-2));
    }
  }

  static constexpr std::int64_t kWidth = 5, kInner = 6;
  Member member;
  Lanes lanes;
  at::Tensor x;
  std::vector<Parameter> first, last;
  std::weak_ptr<Additions> additions;
};

using Started = std::vector<std::string>;

TEST(Lanes, ABranchIsSummedForwardsAndBackwards) {
  for (const std::int64_t tokens : {0, 6, 1041}) {
    for (const bool divides_tokens : {false, true}) {
      SCOPED_TRACE(tokens);
      Branch branch({.lanes = 4, .first = 0, .count = 4, .divides_tokens = divides_tokens}, tokens);
      const at::Tensor sum = branch.compute();
      EXPECT_EQ(sum.dim(), divides_tokens ? 2 : 3);
      const at::Tensor gradient = at::randn(sum.sizes());
      torch::autograd::backward({sum}, {gradient});
      branch.expect_like_autograd(sum.detach(), gradient);
      EXPECT_EQ(branch.member.under_way, 0);
    }
  }
}

TEST(Lanes, LongBranchesAreSummedInPieces) {
  Branch divided({.lanes = 4, .first = 0, .count = 4, .divides_tokens = true}, 1041);
  const at::Tensor sum = divided.compute();
  EXPECT_EQ(divided.member.started,
            (Started{"lane 0 of 261", "lane 1 of 261", "lane 2 of 261", "lane 3 of 258"}));
  torch::autograd::backward({sum}, {at::randn(sum.sizes())});
  EXPECT_EQ(divided.member.started.back(), "rows");
  Branch whole({.lanes = 4, .first = 0, .count = 4}, 1041);
  EXPECT_EQ(whole.compute().size(1), 1041);
  EXPECT_EQ(whole.member.started, (Started{"all", "all", "all", "all"}));
  Branch of_short({.lanes = 4, .first = 0, .count = 4}, 6);
  of_short.compute();
  EXPECT_EQ(of_short.member.started, Started());
  EXPECT_EQ(of_short.member.exchanges, 1);
}

TEST(Lanes, GradientsOfWeightsAreAddedWhileThatOfTheInputIsSummed) {
  Branch branch({.lanes = 2, .first = 0, .count = 2}, 6);
  const at::Tensor sum = branch.compute();
  int waits = 0;
  branch.member.when_waiting = [&] {
    ++waits;
    for (const auto& weights : {branch.first, branch.last}) {
      for (const Parameter& weight : weights) EXPECT_TRUE(weight.gradient.ne(0).any().item<bool>());
    }
  };
  torch::autograd::backward({sum}, {at::randn(sum.sizes())});
  EXPECT_EQ(waits, 1);
}

TEST(Lanes, GradientsOfWeightsThatArePutOffStayPutOff) {
  Branch branch({.lanes = 2, .first = 0, .count = 2}, 6);
  const at::Tensor sum = branch.compute();
  const at::Tensor gradient = at::randn(sum.sizes());
  Additions later;
  {
    const PutOff put_off(later);
    torch::autograd::backward({sum}, {gradient});
  }
  EXPECT_FALSE(branch.first[0].gradient.ne(0).any().item<bool>());
  EXPECT_FALSE(branch.last[1].gradient.ne(0).any().item<bool>());
  EXPECT_EQ(branch.member.started, Started()) << "nothing is left to be done beside the sum";
  later.run();
  branch.expect_like_autograd(sum.detach(), gradient);
}

TEST(Lanes, GradientsOfWeightsAreAddedWhenNothingIsSummed) {
  Branch branch({.lanes = 2, .first = 0, .count = 2}, 6);
  branch.x = branch.x.detach();
  const at::Tensor sum = branch.compute();
  EXPECT_TRUE(branch.additions.expired());
  torch::autograd::backward({sum}, {at::randn(sum.sizes())});
  EXPECT_TRUE(branch.first[1].gradient.ne(0).any().item<bool>());
  EXPECT_TRUE(branch.last[1].gradient.ne(0).any().item<bool>());
}

TEST(Lanes, NothingIsLeftWhenABranchFailsOnTheWayThere) {
  Branch branch({.lanes = 4, .first = 0, .count = 4}, 1041);
  branch.member.limit = 3;
  EXPECT_THROW(branch.compute(), std::runtime_error);
  EXPECT_EQ(branch.member.started.size(), 3U);
  EXPECT_EQ(branch.member.under_way, 0);
  EXPECT_TRUE(branch.additions.expired());
}

TEST(Lanes, NothingIsLeftWhenABranchFailsOnTheWayBack) {
  for (const bool before : {true, false}) {
    Branch branch({.lanes = 2, .first = 0, .count = 2}, 6);
    {
      const at::Tensor sum = branch.compute();
      if (before) branch.member.limit = 0;
      branch.member.when_waiting = [] { throw std::runtime_error("lost"); };
      EXPECT_THROW(torch::autograd::backward({sum}, {at::randn(sum.sizes())}), std::runtime_error);
    }
    EXPECT_EQ(branch.member.under_way, 0);
    EXPECT_TRUE(branch.additions.expired()) << "additions must not hold on to what holds on to them";
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
  const Lanes lanes = {&member, 4};
  const at::Tensor x = at::randn({1, 4, 6}, at::kDouble);
  const Parameter row = shared_by_two(at::randn({6}, at::kDouble));
  const Parameter matrix = {"m", at::randn({6, 6}, at::kDouble), at::zeros({6, 6})};
  try {
    add_bias(x, row, lanes);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "several tensor lanes (parallelism.tensor_lanes) are computed in fp32, bf16 or fp16 in CPU "
                 "memory, but a tensor is Double on cpu");
  }
  EXPECT_THROW(add_places(x, row, {.length = 4}, lanes), UsageError);
  EXPECT_THROW(rms_norm(x, row, 1e-5F, lanes), UsageError);
  EXPECT_THROW(fan_out(x, 1, lanes), UsageError);
  EXPECT_THROW(linear_sum({{x, x}, {&matrix, &matrix}, nullptr}, lanes), UsageError);
}

}  // namespace
}  // namespace lockstep::nn
