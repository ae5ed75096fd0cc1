// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/validation.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>

#include "lockstep/base/failpoint.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/model_folder.h"

namespace lockstep::train {

namespace {

// How many micro-batches of a rank go through the model at the same time.
constexpr int kTogether = 8;
// And through a pipeline, for each of its stages, before it runs empty.
constexpr int kTogetherInStage = 16;

// Of chunks whose weights are shared out: lets them come and go. Does nothing when they are always there.
class ChunkWeights {
 public:
  ChunkWeights(Weights& weights, const Holding& holding) : weights_(weights), holding_(holding) {}

  void fetch(std::size_t chunk) {
    for_buckets(chunk, [&](std::size_t bucket) { weights_.fetch(bucket); });
  }
  void use(std::size_t chunk) {
    for_buckets(chunk, [&](std::size_t bucket) { weights_.use(bucket); });
  }
  void drop(std::size_t chunk) {
    for_buckets(chunk, [&](std::size_t bucket) { weights_.drop(bucket); });
  }

 private:
  template <typename Body>
  void for_buckets(std::size_t chunk, Body body) {
    if (!holding_.shards_weights) return;
    const std::vector<Bucket>& buckets = holding_.partition.buckets;
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (overlap(buckets[bucket].elements, holding_.layout.chunks()[chunk])) body(bucket);
    }
  }

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
      tokens_(static_cast<double>(run.validation.steps) * static_cast<double>(run.training.micro_batch_size) *
              static_cast<double>(spec::targets_per_sample(run))) {}

void Validation::add_chunk_by_chunk(std::span<const int> micro_batches, std::span<double> sums) {
  std::vector<model::Batch> batches;
  for (const int i : micro_batches) batches.push_back(batch(i));
  std::vector<at::Tensor> hidden(batches.size());
  ChunkWeights there(weights_, holding_);
  const std::size_t last = holding_.chunks.size() - 1;
  const bool head_is_elsewhere = last > 0 && model::is_tied(model_);
  there.fetch(0);
  for (std::size_t chunk = 0; chunk <= last; ++chunk) {
    if (chunk < last) there.fetch(chunk + 1);
    if (chunk == last && head_is_elsewhere) there.fetch(0);
    there.use(chunk);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      hidden[i] = forward_through(model_, parameters_, batches[i], holding_.chunks[chunk], hidden[i]);
      get_on();
    }
    if (chunk < last || head_is_elsewhere) there.drop(chunk);
  }
  const std::size_t with_head = head_is_elsewhere ? 0 : last;
  if (head_is_elsewhere) there.use(with_head);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    sums[static_cast<std::size_t>(micro_batches[i])] =
        loss_sum_of_hidden(hidden[i], holding_.head_of(parameters_), batches[i]);
    get_on();
  }
  there.drop(with_head);
}

// From part to part; a stage that has handed a micro-batch on takes the next one.
std::optional<double> Validation::loss_sum_of(int micro_batch) const {
  const comm::Communicator& pipeline = holding_.groups.pipeline;
  const model::Batch batch = this->batch(micro_batch);
  at::Tensor hidden;
  for (int part = 0; part < plan_.placement.parts(); ++part) {
    const Rank holder = plan_.placement.holder_of(part).rank;
    if (holder != pipeline.rank()) continue;
    const Rank before = part == 0 ? holder : plan_.placement.holder_of(part - 1).rank;
    if (before != holder) hidden = receive_hidden(before, batch);
    hidden = forward_through(model_, parameters_, batch, plan_.parts[static_cast<std::size_t>(part)], hidden);
    get_on();
    if (part + 1 == plan_.placement.parts()) {
      return loss_sum_of_hidden(hidden, holding_.head_of(parameters_), batch);
    }
    const Rank after = plan_.placement.holder_of(part + 1).rank;
    if (after == holder) continue;
    hidden = hidden.contiguous();
    pipeline.send(after, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                  {.dtype = nn::dtype_of(hidden)});
  }
  return std::nullopt;
}

model::Batch Validation::batch(int micro_batch) const {
  model::Batch batch = without_dropout(feed_.batch(0, 0, micro_batch));
  get_on();
  batch.team = holding_.team();
  return batch;
}

at::Tensor Validation::receive_hidden(Rank from, const model::Batch& batch) const {
  std::vector<std::int64_t> sizes = batch.targets.sizes().vec();
  if (batch.lanes().divide_tokens()) sizes = {batch.lanes().held().count};
  sizes.push_back(model_.head.weight.shape[1]);
  const at::Tensor hidden = at::empty(sizes, nn::scalar_type_of(weights_.dtype()));
  holding_.groups.pipeline.recv(from, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                                {.dtype = nn::dtype_of(hidden)});
  return hidden;
}

void Validation::add_as_stage(std::span<const int> micro_batches, std::span<double> sums) {
  ChunkWeights there(weights_, holding_);
  const std::size_t chunks = holding_.chunks.size();
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) there.fetch(chunk);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) there.use(chunk);
  for (const int i : micro_batches) sums[static_cast<std::size_t>(i)] = loss_sum_of(i).value_or(0.0);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) there.drop(chunk);
}

std::optional<double> Validation::loss(const std::function<bool()>& leaves) {
  const comm::Communicator& data = holding_.groups.data;
  const int stages = holding_.groups.pipeline.size();
  std::vector<double> sums(static_cast<std::size_t>(micro_batches_), 0.0);
  const int at_once = (stages > 1 ? kTogetherInStage * stages : kTogether) * data.size();
  for (int first = 0; first < micro_batches_; first += at_once) {
    if (first > 0) {
      LOCKSTEP_FAILPOINT("train.validating");
      if (leaves()) return std::nullopt;
    }
    std::vector<int> own;
    const int end = std::min(first + at_once, micro_batches_);
    for (int i = first + data.rank(); i < end; i += data.size()) own.push_back(i);
    stages > 1 ? add_as_stage(own, sums) : add_chunk_by_chunk(own, sums);
  }
  // Each is known to one rank and zero on the others: the sum is exact. Those who compute it together all
  // know it.
  if (holding_.groups.tensor.rank() != 0) std::ranges::fill(sums, 0.0);
  holding_.groups.world.all_reduce(std::as_writable_bytes(std::span(sums)), {.dtype = DType::fp64});
  return std::accumulate(sums.begin(), sums.end(), 0.0) / tokens_;
}

}  // namespace lockstep::train
