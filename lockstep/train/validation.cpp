// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/validation.h"

#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>

#include "lockstep/nn/tensor_view.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/model_folder.h"

namespace lockstep::train {

namespace {

// All weights that are held, while it lives. They take the memory that gradients have in a step.
class WeightsThere {
 public:
  WeightsThere(Weights& weights, const Holding& holding) : weights_(weights), holding_(holding) {
    if (!holding_.shards_weights) return;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket) weights_.fetch(bucket);
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket) weights_.use(bucket);
  }
  WeightsThere(const WeightsThere&) = delete;
  WeightsThere& operator=(const WeightsThere&) = delete;
  ~WeightsThere() {
    if (!holding_.shards_weights) return;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket) weights_.drop(bucket);
  }

 private:
  std::size_t buckets() const { return holding_.partition.buckets.size(); }

  Weights& weights_;
  const Holding& holding_;
};

}  // namespace

Feed::Options validation_feed(const spec::RunSpec& run) {
  return {.corpora = run.data.validation,
          .sharding = spec::Sharding::sample,
          .dense = run.model.name == spec::ModelFamily::mlp,
          .vocabulary = run.model.vocab_size,
          .length = run.training.seq_len,
          .seed = static_cast<std::uint64_t>(run.training.seed),
          .shape = {.lanes = 1,
                    .micro_batches = static_cast<std::uint64_t>(run.validation.steps),
                    .rows = static_cast<std::uint64_t>(run.training.micro_batch_size)}};
}

Validation::Validation(const spec::RunSpec& run, const Feed& feed, const model::Model& model,
                       const Holding& holding, const plan::PipelinePlan& plan, Weights& weights)
    : model_(model),
      holding_(holding),
      plan_(plan),
      feed_(feed),
      weights_(weights),
      parameters_(
          holding.layout, [&](const model::Place& place) { return weights.view(place); },
          [](const model::Place& place) { return no_gradients(place.count); }),
      micro_batches_(static_cast<int>(run.validation.steps)),
      tokens_(static_cast<double>(run.validation.steps * run.training.micro_batch_size *
                                  spec::targets_per_sample(run))) {}

// From part to part; a stage that has handed a micro-batch on takes the next one.
std::optional<double> Validation::loss_sum_of(int micro_batch) const {
  const comm::Communicator& pipeline = holding_.groups.pipeline;
  const model::Batch batch = without_dropout(feed_.batch(0, 0, micro_batch));
  at::Tensor hidden;
  for (int part = 0; part < plan_.placement.parts(); ++part) {
    const Rank holder = plan_.placement.holder_of(part).rank;
    if (holder != pipeline.rank()) continue;
    const Rank before = part == 0 ? holder : plan_.placement.holder_of(part - 1).rank;
    if (before != holder) hidden = receive_hidden(before, batch.targets);
    hidden = forward_through(model_, parameters_, batch, plan_.parts[static_cast<std::size_t>(part)], hidden);
    if (part + 1 == plan_.placement.parts()) {
      return loss_sum_of_hidden(hidden, parameters_, batch);
    }
    const Rank after = plan_.placement.holder_of(part + 1).rank;
    if (after == holder) continue;
    hidden = hidden.contiguous();
    pipeline.send(after, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                  {.dtype = nn::dtype_of(hidden)});
  }
  return std::nullopt;
}

at::Tensor Validation::receive_hidden(Rank from, const at::Tensor& targets) const {
  std::vector<std::int64_t> sizes = targets.sizes().vec();
  sizes.push_back(model_.head.weight.shape[1]);
  const at::Tensor hidden = at::empty(sizes, nn::scalar_type_of(weights_.dtype()));
  holding_.groups.pipeline.recv(from, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                                {.dtype = nn::dtype_of(hidden)});
  return hidden;
}

double Validation::loss() {
  const comm::Communicator& data = holding_.groups.data;
  std::vector<double> sums(static_cast<std::size_t>(micro_batches_), 0.0);
  const WeightsThere weights_there(weights_, holding_);
  for (int i = data.rank(); i < micro_batches_; i += data.size()) {
    sums[static_cast<std::size_t>(i)] = loss_sum_of(i).value_or(0.0);
  }
  // Each is known to one rank and zero on the others: the sum is exact.
  holding_.groups.world.all_reduce(std::as_writable_bytes(std::span(sums)), {.dtype = DType::fp64});
  return std::accumulate(sums.begin(), sums.end(), 0.0) / tokens_;
}

}  // namespace lockstep::train
