// SPDX-License-Identifier: Apache-2.0
//
// The promise of the project, at the smallest scale: whoever owns the lanes, losses and weights have the same
// bits.
#include "lockstep/train/step_runner.h"

#include <exception>
#include <latch>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/support/ranks.h"
#include "tests/train/step_rig.h"

namespace lockstep::train {
namespace {

// Gives back what it gets; a gradient that is huge is no longer finite behind it.
class Amplifier final : public model::Block {
 public:
  std::vector<model::ParameterSpec> parameters() const override { return {}; }
  at::Tensor forward(const at::Tensor& hidden, const model::Batch&, model::BlockParameters) const override {
    return hidden.mul(1e-30).mul(1e30);
  }
};
constexpr float kPoisonous = 1e12F;

// The amplifier stands between the two layers.
model::Model poisoned_model() {
  model::Model model = model::llama::make(kSmallLlama);
  model.blocks.insert(model.blocks.begin() + 2, std::make_unique<Amplifier>());
  return model;
}

std::optional<std::size_t> first_poisoned() {
  const model::FlatLayout layout(poisoned_model());
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    if (layout.specs()[i].name == "model.layers.0.input_layernorm.weight") return i;
  }
  return std::nullopt;
}

TEST(StepRunner, TheBitsDoNotDependOnTheNumberOfWorkers) {
  for (const Setting& setting : {Setting{.dtype = DType::fp32},
                                 {.dtype = DType::fp32, .dropout = 0.2F},
                                 {.dtype = DType::bf16, .dropout = 0.2F, .is_gpt = true}}) {
    const Outcome alone = train(even_ownership(8, 1), setting).front();
    EXPECT_TRUE(alone.steps.back().updated);
    EXPECT_GT(alone.steps.front().gradient_norm, kMaxNorm) << "nothing is clipped";
    for (int workers : {2, 3, 4, 6, 8}) {
      for (const Outcome& outcome : train(even_ownership(8, workers), setting)) {
        expect_same(outcome, alone, std::to_string(workers) + " workers");
      }
    }
    Setting whole = setting;
    whole.zero_stage = 0;
    for (const Outcome& outcome : train(even_ownership(8, 3), whole)) {
      expect_same(outcome, alone, "an update that is not shared out");
    }
  }
}

TEST(StepRunner, TheBitsDoNotDependOnWhoOwnsHowMuch) {
  const Setting setting = {.dropout = 0.2F};
  const Outcome alone = train(even_ownership(8, 1), setting).front();
  for (const LaneOwnership& lanes : {LaneOwnership{{0, 5, 8}},
                                     {{0, 0, 3, 8}},
                                     {{0, 1, 1, 7, 8}},
                                     weighted_ownership(8, {1.0, 3.0, 0.5})}) {
    for (const Outcome& outcome : train(lanes, setting)) expect_same(outcome, alone, "uneven lanes");
  }
}

TEST(StepRunner, RecomputationAndBucketsDoNotShow) {
  for (bool is_gpt : {false, true}) {
    const Outcome plain = train(even_ownership(4, 2), {.dropout = 0.2F, .is_gpt = is_gpt}).front();
    for (int every : {1, 2}) {
      const Setting setting = {.recompute_every = every, .dropout = 0.2F, .is_gpt = is_gpt};
      expect_same(train(even_ownership(4, 2), setting).front(), plain, "recomputed");
    }
    for (std::int64_t elements : {std::int64_t{1}, std::int64_t{1} << 40}) {
      const Setting setting = {.bucket_elements = elements, .dropout = 0.2F, .is_gpt = is_gpt};
      expect_same(train(even_ownership(4, 2), setting).front(), plain, "other buckets");
    }
  }
}

TEST(StepRunner, ExactAlgorithmsGiveTheBitsOfTheLanes) {
  const Outcome alone = train(even_ownership(8, 1), {}).front();
  for (const auto& [zero_stage, hosts] : {std::pair{0, 0}, {1, 0}, {1, 2}}) {
    for (comm::Algorithm algorithm : {comm::Algorithm::direct, comm::Algorithm::halving_doubling}) {
      const Setting setting = {.zero_stage = zero_stage, .hosts = hosts, .sum = {.algorithm = algorithm}};
      for (const Outcome& outcome : train(even_ownership(8, 4), setting)) {
        expect_same(outcome, alone, std::string(schedule::name_of(algorithm)));
      }
    }
  }
}

TEST(StepRunner, OtherAlgorithmsGiveNearlyTheSame) {
  const Outcome alone = train(even_ownership(8, 1), {}).front();
  for (const auto& [zero_stage, hosts] : {std::pair{0, 0}, {1, 0}, {2, 2}}) {
    for (comm::Algorithm algorithm : {comm::Algorithm::ring, comm::Algorithm::tree, comm::Algorithm::mesh,
                                      comm::Algorithm::hierarchical}) {
      // Four workers with lanes, three of them with several pieces, and one without.
      const Setting setting = {
          .zero_stage = zero_stage, .hosts = hosts, .sum = {.exact = false, .algorithm = algorithm}};
      const std::vector<Outcome> outcomes = train({{0, 3, 3, 6, 8}}, setting);
      for (const Outcome& outcome : outcomes) {
        expect_same(outcome, outcomes.front(), "another rank");
        for (std::size_t i = 0; i < alone.steps.size(); ++i) {
          EXPECT_NEAR(outcome.steps[i].gradient_norm, alone.steps[i].gradient_norm,
                      1e-3 * alone.steps[i].gradient_norm)
              << schedule::name_of(algorithm) << ", step " << i;
        }
      }
    }
  }
}

TEST(StepRunner, AHierarchyOfScatteredHostsIsRefused) {
  const SumOptions hierarchy = {.algorithm = comm::Algorithm::hierarchical};
  EXPECT_NO_THROW(require_hosts_in_order({0, 0, 1, 1}, hierarchy));
  EXPECT_NO_THROW(require_hosts_in_order({0, 1, 0, 1}, {}));
  EXPECT_THROW(require_hosts_in_order({0, 1, 0, 1}, hierarchy), UsageError);
}

TEST(StepRunner, AnAlgorithmThatCannotKeepTheOrderIsRefused) {
  const comm::Communicator alone;
  EXPECT_NO_THROW(
      GradientSum(alone, even_ownership(4, 1), true, {.algorithm = comm::Algorithm::halving_doubling}));
  EXPECT_THROW(GradientSum(alone, {{0, 3, 8}}, true, {.algorithm = comm::Algorithm::halving_doubling}),
               UsageError);
}

TEST(StepRunner, AGradientThatIsNotFiniteOnOneRankSkipsTheUpdateOnAll) {
  auto endpoints = transport::make_loopback(3);
  std::vector<StepResult> results(endpoints.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    ranks.emplace_back([&, rank, endpoint = std::move(endpoints[rank])]() mutable {
      kernels::set_threads(1);
      const comm::Communicator communicator(std::move(endpoint), {.name = "dp"});
      const model::Model model = poisoned_model();
      const Holding holding = holding_of(model, communicator, {.zero_stage = 1});
      BufferPool pool(holding.groups.world);
      Weights weights(holding, pool, {});
      weights.give_first_values(11);
      const at::Tensor before = weights.gather_master();
      StepRunner runner(model, holding, pool, weights, {.lanes = even_ownership(4, 3)});
      StepInputs inputs;
      inputs.batch = [](int lane, int micro_batch) {
        return batch_at(0, lane, micro_batch, kSmallLlama.vocabulary);
      };
      inputs.loss_scale = rank == 1 ? kPoisonous : 1.0F;
      inputs.optimizer = kernels::AdamW{};
      results[rank] = runner.run(inputs);
      EXPECT_TRUE(weights.gather_master().equal(before));
    });
  }
  ranks.clear();
  for (const StepResult& result : results) {
    EXPECT_FALSE(result.updated);
    EXPECT_EQ(result.not_finite, first_poisoned());
  }
}

// One step of two ranks, of which the second one fails after its first action of a kind, and the first one
// then with what this returns.
std::exception_ptr failure_beside_a_rank_that_ends_after(schedule::Act act, int zero_stage) {
  std::exception_ptr failure;
  std::latch second_has_failed(1);
  std::latch first_has_ended(1);
  test::run_ranks(2, [&](const comm::Communicator& world) {
    kernels::set_threads(1);
    StepInputs inputs;
    inputs.batch = [](int lane, int micro_batch) {
      return batch_at(0, lane, micro_batch, kSmallLlama.vocabulary);
    };
    inputs.optimizer = kernels::AdamW{};
    inputs.observe = [&](const schedule::Action& action, Clock::time_point, Clock::time_point) {
      if (world.rank() == 1 && action.act == act) throw DataError("a file is gone");
    };
    try {
      const model::Model model = model::llama::make(kSmallLlama);
      const Holding holding = holding_of(model, world, {.zero_stage = zero_stage});
      BufferPool pool(world);
      Weights weights(holding, pool, {});
      weights.give_first_values(11);
      if (world.rank() == 0) second_has_failed.wait();
      StepRunner(model, holding, pool, weights, {.lanes = even_ownership(2, 2)}).run(inputs);
    } catch (const DataError&) {
      second_has_failed.count_down();
      first_has_ended.wait();
    } catch (...) {
      failure = std::current_exception();
      first_has_ended.count_down();
    }
  });
  return failure;
}

// Before memory goes that sums and fetches work on, and without the others waiting for their deadline.
TEST(StepRunner, AnExceptionCancelsWhatIsUnderWay) {
  for (const auto& [act, zero_stage] :
       {std::pair{schedule::Act::reduce, 0}, {schedule::Act::reduce, 2}, {schedule::Act::fetch, 3}}) {
    const std::exception_ptr failure = failure_beside_a_rank_that_ends_after(act, zero_stage);
    ASSERT_TRUE(failure);
    EXPECT_THROW(std::rethrow_exception(failure), Aborted) << name_of(act);
  }
}

TEST(StepRunner, LanesMoveBetweenStepsAndTheBitsStay) {
  const Outcome alone = train(even_ownership(8, 1), {.dropout = 0.2F}).front();
  const std::vector<LaneOwnership> moves = {{{0, 1, 8}}, {{0, 8, 8}}, {{0, 5, 8}}};
  for (const Outcome& outcome : train(even_ownership(8, 2), {.moves = moves, .dropout = 0.2F})) {
    expect_same(outcome, alone, "moved lanes");
  }
}

TEST(StepRunner, TheLossFalls) {
  const Outcome outcome = train(even_ownership(2, 1), {.one_batch = true}).front();
  EXPECT_LT(outcome.steps.back().loss_sum, outcome.steps.front().loss_sum);
  EXPECT_GT(outcome.steps.front().gradient_norm, 0.0);
}

TEST(StepRunner, AGradientThatIsNotFiniteChangesNothingAndIsNamed) {
  kernels::set_threads(1);
  const model::Model model = poisoned_model();
  const Holding holding = holding_of(model, comm::Communicator(), {});
  BufferPool pool(holding.groups.world);
  Weights weights(holding, pool, {});
  weights.give_first_values(11);
  const at::Tensor before = weights.gather_master();
  StepRunner runner(model, holding, pool, weights, {.lanes = even_ownership(1, 1)});
  StepInputs inputs;
  inputs.batch = [](int lane, int micro_batch) {
    return batch_at(0, lane, micro_batch, kSmallLlama.vocabulary);
  };
  inputs.loss_scale = kPoisonous;
  inputs.optimizer = kernels::AdamW{};
  const StepResult result = runner.run(inputs);
  EXPECT_FALSE(result.updated);
  EXPECT_EQ(result.not_finite, first_poisoned());
  EXPECT_TRUE(weights.gather_master().equal(before));
}

}  // namespace
}  // namespace lockstep::train
