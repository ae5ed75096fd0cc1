// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/validation.h"

#include <numeric>
#include <vector>

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
                       const model::FlatLayout& layout, const at::Tensor& values,
                       const comm::Communicator& communicator)
    : model_(model),
      communicator_(communicator),
      feed_(feed),
      parameters_(layout, values, no_gradients(layout.elements())),
      micro_batches_(static_cast<int>(run.validation.steps)),
      tokens_(static_cast<double>(run.validation.steps * run.training.micro_batch_size *
                                  spec::targets_per_sample(run))) {}

double Validation::loss_sum_of(int micro_batch) const {
  return loss_sum(model_, parameters_, feed_.batch(0, 0, micro_batch));
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
