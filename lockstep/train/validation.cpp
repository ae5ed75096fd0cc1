// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/validation.h"

#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {
namespace {

Feed::Options feed_options(const spec::RunSpec& run) {
  return {.corpora = run.data.validation,
          .sharding = spec::Sharding::sample,
          .vocabulary = run.model.vocab_size,
          .length = run.training.seq_len,
          .seed = static_cast<std::uint64_t>(run.training.seed),
          .shape = {.lanes = 1,
                    .micro_batches = static_cast<std::uint64_t>(run.validation.steps),
                    .rows = static_cast<std::uint64_t>(run.training.micro_batch_size)}};
}

// Evaluation goes one way only: nothing is ever added to these, so no memory stands behind them.
at::Tensor no_gradients(std::int64_t elements) {
  return at::empty({1}, at::kFloat).expand({elements});
}

}  // namespace

Validation::Validation(const spec::RunSpec& run, const model::Model& model, const model::FlatLayout& layout,
                       const at::Tensor& values, const comm::Communicator& communicator)
    : model_(model),
      communicator_(communicator),
      feed_(feed_options(run)),
      parameters_(layout, values, no_gradients(layout.elements())),
      micro_batches_(static_cast<int>(run.validation.steps)),
      tokens_(
          static_cast<double>(run.validation.steps * run.training.micro_batch_size * run.training.seq_len)) {}

double Validation::loss_sum_of(int micro_batch) const {
  const model::Batch batch = feed_.batch(0, 0, micro_batch);
  at::Tensor hidden;
  for (std::size_t block = 0; block < model_.blocks.size(); ++block) {
    hidden = model::forward_only(*model_.blocks[block], hidden, batch, parameters_.of_block(block));
  }
  return kernels::sum_of(nn::floats_of(nn::head_loss(hidden, parameters_.head(), batch.targets)));
}

double Validation::loss() const {
  std::vector<double> sums(static_cast<std::size_t>(micro_batches_), 0.0);
  for (int i = communicator_.rank(); i < micro_batches_; i += communicator_.size()) {
    sums[static_cast<std::size_t>(i)] = loss_sum_of(i);
  }
  // Each is known to one rank and zero on the others: the sum is exact.
  communicator_.all_reduce(std::as_writable_bytes(std::span(sums)), {.dtype = DType::fp64});
  return std::accumulate(sums.begin(), sums.end(), 0.0) / tokens_;
}

}  // namespace lockstep::train
