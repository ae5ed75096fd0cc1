// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/evaluation.h"

#include <algorithm>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/batches.h"

namespace lockstep::train {

model::Batch without_dropout(model::Batch batch) {
  batch.samples = {};
  return batch;
}

at::Tensor forward_through(const model::Model& model, const model::Parameters& parameters,
                           const model::Batch& batch, const schedule::Chunk& blocks, at::Tensor hidden) {
  for (int block = blocks.first_block; block < blocks.end_block; ++block) {
    const auto index = static_cast<std::size_t>(block);
    hidden = model::forward_only(*model.blocks[index], hidden, batch, parameters.of_block(index));
  }
  return hidden;
}

double loss_sum_of_hidden(const at::Tensor& hidden, const nn::DividedHead& head, const model::Batch& batch) {
  return kernels::sum_of(nn::floats_of(nn::head_loss(hidden, head, batch.targets, batch.lanes())));
}

double loss_sum(const model::Model& model, const model::Parameters& parameters, const model::Batch& batch) {
  const model::Batch whole = without_dropout(batch);
  const schedule::Chunk all = {0, static_cast<int>(model.blocks.size())};
  const nn::DividedHead head = {parameters.heads(), model.head.weight.shape[0]};
  return loss_sum_of_hidden(forward_through(model, parameters, whole, all, {}), head, whole);
}

EvaluationResult evaluate(const model::Model& model, const model::Parameters& parameters,
                          const EvaluationOptions& options) {
  const data::Windows windows = open_windows(options.corpus, options.vocabulary, options.length);
  auto sequences = static_cast<std::int64_t>(windows.count());
  if (options.max_sequences > 0) sequences = std::min(sequences, options.max_sequences);
  double sum = 0;
  for (std::int64_t first = 0; first < sequences; first += options.rows) {
    if (options.between) options.between();
    const auto rows = static_cast<std::uint64_t>(std::min(options.rows, sequences - first));
    const auto read = [&](std::uint64_t row, std::span<data::Token> tokens) {
      windows.read(static_cast<std::uint64_t>(first) + row, tokens);
    };
    sum += loss_sum(model, parameters, make_batch(rows, options.length, read));
  }
  const std::int64_t tokens = sequences * options.length;
  return {.loss = sum / static_cast<double>(tokens), .tokens = tokens};
}

}  // namespace lockstep::train
