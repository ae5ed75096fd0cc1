// SPDX-License-Identifier: Apache-2.0
#include "tests/train/step_rig.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "lockstep/kernels/compute/threads.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/gpt/shard_rules.h"
#include "lockstep/model/llama/shard_rules.h"
#include "lockstep/train/shares.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::train {
namespace {

constexpr int kRows = 2;
constexpr int kLength = 23;  // tokens that lanes cannot share out evenly

model::Model model_of(const Setting& setting) {
  if (setting.is_gpt) {
    return model::gpt::make({.layers = setting.layers,
                             .width = setting.width,
                             .heads = setting.heads,
                             .ffn_width = 2 * setting.width,
                             .vocabulary = setting.vocabulary,
                             .positions = kLength,
                             .dropout = setting.dropout});
  }
  model::llama::Config config = kSmallLlama;
  config.layers = setting.layers;
  config.width = setting.width;
  config.heads = setting.heads;
  config.kv_heads = setting.kv_heads;
  config.head_width = setting.width / setting.heads;
  config.ffn_width = 2 * setting.width;
  config.vocabulary = setting.vocabulary;
  config.dropout = setting.dropout;
  config.tied = setting.is_tied;
  return model::llama::make(config);
}

Division division_of(const Setting& setting) {
  return {setting.is_gpt ? model::gpt::shard_rules() : model::llama::shard_rules(),
          {.heads = setting.heads,
           .kv_heads = setting.is_gpt ? setting.heads : setting.kv_heads,
           .ffn_width = 2 * setting.width}};
}

std::vector<std::int64_t> hidden_of(const Setting& setting, const nn::LaneTeam* team) {
  const nn::Lanes lanes = {team, kRows * kLength};
  if (lanes.divide_tokens()) return {lanes.held().count, setting.width};
  return {kRows, kLength, setting.width};
}

// Blocks cost the same.
plan::PipelinePlan plan_of(const Setting& setting, const model::Model& model) {
  plan::PipelinePlan plan = {.placement = schedule::placement_of(setting.pipeline),
                             .parts = {},
                             .schedule = std::string(name_of(setting.pipeline.schedule))};
  plan.parts = plan::cut_by_cost(std::vector<double>(model.blocks.size(), 1.0), plan.placement.parts());
  return plan;
}

// Which of the batches that were given out are still in use. By their targets: the tokens of a tied embedding
// stay until its lane ends.
class BatchesInUse {
 public:
  int add(const model::Batch& batch) {
    given_.emplace_back(batch.targets.getIntrusivePtr());
    return static_cast<int>(std::ranges::count_if(given_, [](const auto& one) { return !one.expired(); }));
  }

 private:
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> given_;
};

// By rank: as many of every stage on each host. Loopback does not tell where ranks are.
std::vector<int> hosts_of(const Setting& setting, int data_ranks) {
  const int each = data_ranks / std::max(1, setting.hosts) * setting.tensor;
  std::vector<int> hosts;
  for (int rank = 0; rank < data_ranks * setting.pipeline.stages * setting.tensor && setting.hosts > 0;
       ++rank) {
    hosts.push_back(rank / each);
  }
  return hosts;
}

// What the optimizer remembers of the whole model; all ranks call it together.
at::Tensor gather_moment(const Holding& holding, const Weights& weights, int index) {
  std::vector<float> memory;
  return gather_whole(holding, DType::fp32, [&](std::size_t bucket) {
    memory.resize(holding.partition.own[bucket].size());
    weights.copy_quantity(1 + index, bucket, {0, memory.size()}, memory);
    return ConstBytes(std::as_bytes(std::span(memory)));
  });
}

Outcome train_as(const comm::Communicator& world, const LaneOwnership& lanes, const Setting& setting) {
  kernels::set_threads(1);
  const model::Model model = model_of(setting);
  const plan::PipelinePlan plan = plan_of(setting, model);
  const Mesh mesh(world.size(),
                  {.pipeline = setting.pipeline.stages, .data = lanes.world(), .tensor = setting.tensor});
  const spec::ZeroScope scope = setting.hosts > 0 ? spec::ZeroScope::host : spec::ZeroScope::world;
  const Groups groups = make_groups(world, mesh, scope);
  std::optional<TensorLanes> tensor;
  if (setting.tensor_lanes > 1) {
    tensor.emplace(model, division_of(setting), groups.tensor,
                   TensorLanes::Options{setting.tensor_lanes, setting.sequence_parallel});
  }
  const Holding holding = holding_of(model, plan, groups,
                                     {.bucket_elements = setting.bucket_elements,
                                      .tensor = tensor ? &*tensor : nullptr,
                                      .zero_stage = setting.zero_stage});
  BufferPool pool(world);
  Weights weights(holding, pool, {.dtype = setting.dtype, .offload_folder = setting.offload_folder});
  weights.give_first_values(11);
  StepRunner runner(model, holding, pool, weights,
                    {.lanes = lanes,
                     .micro_batches = setting.micro_batches,
                     .recompute_every = setting.recompute_every,
                     .sum = setting.sum,
                     .pipeline = plan,
                     .hidden = hidden_of(setting, holding.team())});
  Outcome outcome;
  BatchesInUse in_use;
  for (int step = 0; step < setting.steps; ++step) {
    const auto move = static_cast<std::size_t>(step) - 1;
    if (step > 0 && move < setting.moves.size()) runner.assign(setting.moves[move]);
    StepInputs inputs;
    inputs.batch = [&, data = setting.one_batch ? 0 : step](int lane, int micro_batch) {
      model::Batch batch = batch_at(data, lane, micro_batch, setting.vocabulary);
      outcome.most_batches = std::max(outcome.most_batches, in_use.add(batch));
      return batch;
    };
    inputs.loss_scale = 1.0F / static_cast<float>(lanes.lanes() * setting.micro_batches * kRows * kLength);
    inputs.max_norm = kMaxNorm;
    inputs.optimizer = kernels::AdamW{
        .learning_rate = 1e-2F, .weight_decay = 0.1F, .step = static_cast<std::uint64_t>(step) + 1};
    outcome.steps.push_back(runner.run(inputs));
  }
  for (const at::Tensor& part : {weights.gather_working(), weights.gather_master(),
                                 gather_moment(holding, weights, 0), gather_moment(holding, weights, 1)}) {
    const auto* bytes = static_cast<const std::byte*>(part.data_ptr());
    outcome.weights.insert(outcome.weights.end(), bytes, bytes + part.nbytes());
  }
  return outcome;
}

}  // namespace

model::Batch batch_at(int step, int lane, int micro_batch, std::int64_t vocabulary) {
  const auto first = static_cast<std::uint64_t>(((step * 2 + micro_batch) * 8 + lane) * kRows);
  const at::Tensor tokens = at::empty({kRows, kLength + 1}, at::kInt);
  auto* token = tokens.data_ptr<std::int32_t>();
  for (int i = 0; i < kRows * (kLength + 1); ++i) {
    token[i] = static_cast<std::int32_t>((step * 7919 + lane * 104729 + micro_batch * 1299709 + i * i * 31) %
                                         vocabulary);
  }
  // Read and predicted, with padding behind it if the vocabulary is padded.
  token[kLength / 2] = static_cast<std::int32_t>(vocabulary - 1);
  model::Batch batch = {tokens.narrow(1, 0, kLength).contiguous(), tokens.narrow(1, 1, kLength).contiguous()};
  batch.samples = {.seed = 5, .numbers = {first, first + 1}};
  return batch;
}

std::vector<Outcome> train(const LaneOwnership& lanes, const Setting& setting) {
  auto endpoints = transport::make_loopback(lanes.world() * setting.pipeline.stages * setting.tensor);
  std::vector<Outcome> outcomes(endpoints.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    ranks.emplace_back([&, rank, endpoint = std::move(endpoints[rank])]() mutable {
      const comm::Communicator world(std::move(endpoint),
                                     {.name = "world", .hosts = hosts_of(setting, lanes.world())});
      outcomes[rank] = train_as(world, lanes, setting);
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

}  // namespace lockstep::train
