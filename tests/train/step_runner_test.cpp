// SPDX-License-Identifier: Apache-2.0
//
// The promise of the project, at the smallest scale: whoever owns the lanes, losses and weights have the same
// bits.
#include "lockstep/train/step_runner.h"

#include <cstring>
#include <optional>
#include <thread>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::train {
namespace {

constexpr model::llama::Config kConfig = {.layers = 2,
                                          .width = 32,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_width = 8,
                                          .ffn_width = 64,
                                          .vocabulary = 61,
                                          .positions = 24,
                                          .tied = true};
constexpr int kRows = 2;
constexpr int kLength = 24;
constexpr double kMaxNorm = 0.1;

// Which samples stand at a place of a step, whoever asks.
model::Batch batch_at(int step, int lane, int micro_batch) {
  const auto first = static_cast<std::uint64_t>(((step * 2 + micro_batch) * 8 + lane) * kRows);
  const at::Tensor tokens = at::empty({kRows, kLength + 1}, at::kInt);
  auto* token = tokens.data_ptr<std::int32_t>();
  for (int i = 0; i < kRows * (kLength + 1); ++i) {
    token[i] = (step * 7919 + lane * 104729 + micro_batch * 1299709 + i * i * 31) % 61;
  }
  model::Batch batch = {tokens.narrow(1, 0, kLength).contiguous(), tokens.narrow(1, 1, kLength).contiguous()};
  batch.samples = {.seed = 5, .numbers = {first, first + 1}};
  return batch;
}

struct Setting {
  DType dtype = DType::fp32;
  int micro_batches = 2;
  int recompute_every = 0;
  std::int64_t bucket_elements = 1000;
  bool shards_update = true;
  SumOptions sum = {};
  bool one_batch = false;                 // the same data in every step
  std::vector<LaneOwnership> moves = {};  // before steps 1, 2, ...
  float dropout = 0.0F;
  bool is_gpt = false;
};

struct Outcome {
  std::vector<StepResult> steps;
  std::vector<std::byte> weights;  // all that is remembered
};

model::Model model_of(const Setting& setting) {
  if (setting.is_gpt) {
    return model::gpt::make({.layers = 2,
                             .width = 32,
                             .heads = 4,
                             .ffn_width = 64,
                             .vocabulary = 61,
                             .positions = kLength,
                             .dropout = setting.dropout});
  }
  model::llama::Config config = kConfig;
  config.dropout = setting.dropout;
  return model::llama::make(config);
}

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
  model::Model model = model::llama::make(kConfig);
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

Outcome train_as(const comm::Communicator& communicator, const LaneOwnership& lanes, const Setting& setting) {
  kernels::set_threads(1);
  const model::Model model = model_of(setting);
  const model::FlatLayout layout(model);
  const Partition partition = partition_of(layout, {.bucket_elements = setting.bucket_elements,
                                                    .world = communicator.size(),
                                                    .rank = communicator.rank(),
                                                    .shards_update = setting.shards_update});
  Weights weights(layout, partition, communicator, setting.dtype, 11, 2);
  StepRunner runner(model, layout, partition, communicator, weights,
                    {.lanes = lanes,
                     .micro_batches = setting.micro_batches,
                     .recompute_every = setting.recompute_every,
                     .sum = setting.sum});
  Outcome outcome;
  for (int step = 0; step < 4; ++step) {
    const auto move = static_cast<std::size_t>(step) - 1;
    if (step > 0 && move < setting.moves.size()) runner.assign(setting.moves[move]);
    StepInputs inputs;
    inputs.batch = [data = setting.one_batch ? 0 : step](int lane, int micro_batch) {
      return batch_at(data, lane, micro_batch);
    };
    inputs.loss_scale = 1.0F / static_cast<float>(lanes.lanes() * setting.micro_batches * kRows * kLength);
    inputs.max_norm = kMaxNorm;
    inputs.optimizer = kernels::AdamW{
        .learning_rate = 1e-2F, .weight_decay = 0.1F, .step = static_cast<std::uint64_t>(step) + 1};
    outcome.steps.push_back(runner.run(inputs));
  }
  for (const at::Tensor& part :
       {weights.working(), weights.gather_master(), weights.gather_moment(0), weights.gather_moment(1)}) {
    const auto* bytes = static_cast<const std::byte*>(part.data_ptr());
    outcome.weights.insert(outcome.weights.end(), bytes, bytes + part.nbytes());
  }
  return outcome;
}

// One thread per rank; what every rank ends with.
std::vector<Outcome> train(const LaneOwnership& lanes, const Setting& setting) {
  auto endpoints = transport::make_loopback(lanes.world());
  std::vector<Outcome> outcomes(endpoints.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    ranks.emplace_back([&, rank, endpoint = std::move(endpoints[rank])]() mutable {
      const comm::Communicator communicator(std::move(endpoint), {.name = "dp"});
      outcomes[rank] = train_as(communicator, lanes, setting);
    });
  }
  ranks.clear();
  return outcomes;
}

void expect_same(const Outcome& found, const Outcome& expected, const std::string& what) {
  ASSERT_EQ(found.steps.size(), expected.steps.size()) << what;
  for (std::size_t i = 0; i < found.steps.size(); ++i) {
    EXPECT_EQ(std::memcmp(&found.steps[i].loss_sum, &expected.steps[i].loss_sum, sizeof(double)), 0)
        << what << ", step " << i << ": " << found.steps[i].loss_sum << " and " << expected.steps[i].loss_sum;
    EXPECT_EQ(found.steps[i].gradient_norm, expected.steps[i].gradient_norm) << what << ", step " << i;
  }
  EXPECT_EQ(found.weights, expected.weights) << what;
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
    whole.shards_update = false;
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
  for (bool shards_update : {false, true}) {
    for (comm::Algorithm algorithm : {comm::Algorithm::direct, comm::Algorithm::halving_doubling}) {
      const Setting setting = {.shards_update = shards_update, .sum = {.algorithm = algorithm}};
      for (const Outcome& outcome : train(even_ownership(8, 4), setting)) {
        expect_same(outcome, alone, std::string(schedule::name_of(algorithm)));
      }
    }
  }
}

TEST(StepRunner, OtherAlgorithmsGiveNearlyTheSame) {
  const Outcome alone = train(even_ownership(8, 1), {}).front();
  for (bool shards_update : {false, true}) {
    for (comm::Algorithm algorithm : {comm::Algorithm::ring, comm::Algorithm::tree, comm::Algorithm::mesh}) {
      // Four workers with lanes, three of them with several pieces, and one without.
      const Setting setting = {.shards_update = shards_update,
                               .sum = {.exact = false, .algorithm = algorithm}};
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
      const model::FlatLayout layout(model);
      const Partition partition =
          partition_of(layout, {.world = 3, .rank = communicator.rank(), .shards_update = true});
      Weights weights(layout, partition, communicator, DType::fp32, 11, 2);
      const at::Tensor before = weights.gather_master();
      StepRunner runner(model, layout, partition, communicator, weights, {.lanes = even_ownership(4, 3)});
      StepInputs inputs;
      inputs.batch = [](int lane, int micro_batch) { return batch_at(0, lane, micro_batch); };
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
  const model::FlatLayout layout(model);
  const comm::Communicator alone;
  const Partition partition = partition_of(layout, {});
  Weights weights(layout, partition, alone, DType::fp32, 11, 2);
  const at::Tensor before = weights.gather_master();
  StepRunner runner(model, layout, partition, alone, weights, {.lanes = even_ownership(1, 1)});
  StepInputs inputs;
  inputs.batch = [](int lane, int micro_batch) { return batch_at(0, lane, micro_batch); };
  inputs.loss_scale = kPoisonous;
  inputs.optimizer = kernels::AdamW{};
  const StepResult result = runner.run(inputs);
  EXPECT_FALSE(result.updated);
  EXPECT_EQ(result.not_finite, first_poisoned());
  EXPECT_TRUE(weights.gather_master().equal(before));
}

}  // namespace
}  // namespace lockstep::train
