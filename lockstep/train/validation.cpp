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
                       const Holding& holding, const plan::PipelinePlan& plan, const at::Tensor& values)
    : model_(model),
      holding_(holding),
      plan_(plan),
      feed_(feed),
      type_(values.scalar_type()),
      parameters_(holding.layout, values, no_gradients(holding.layout.elements())),
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
    pipeline.send(after, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                  {.dtype = nn::dtype_of(hidden)});
  }
  return std::nullopt;
}

at::Tensor Validation::receive_hidden(Rank from, const at::Tensor& targets) const {
  std::vector<std::int64_t> sizes = targets.sizes().vec();
  sizes.push_back(model_.head.weight.shape[1]);
  const at::Tensor hidden = at::empty(sizes, type_);
  holding_.groups.pipeline.recv(from, {static_cast<std::byte*>(hidden.data_ptr()), hidden.nbytes()},
                                {.dtype = nn::dtype_of(hidden)});
  return hidden;
}

double Validation::loss() const {
  const comm::Communicator& data = holding_.groups.data;
  std::vector<double> sums(static_cast<std::size_t>(micro_batches_), 0.0);
  for (int i = data.rank(); i < micro_batches_; i += data.size()) {
    sums[static_cast<std::size_t>(i)] = loss_sum_of(i).value_or(0.0);
  }
  // Each is known to one rank and zero on the others: the sum is exact.
  holding_.groups.world.all_reduce(std::as_writable_bytes(std::span(sums)), {.dtype = DType::fp64});
  return std::accumulate(sums.begin(), sums.end(), 0.0) / tokens_;
}

}  // namespace lockstep::train
