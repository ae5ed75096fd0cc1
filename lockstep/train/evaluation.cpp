// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/evaluation.h"

#include <algorithm>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/batches.h"

namespace lockstep::train {

double loss_sum(const model::Model& model, const model::Parameters& parameters, const model::Batch& batch) {
  model::Batch whole = batch;
  whole.samples = {};
  at::Tensor hidden;
  for (std::size_t block = 0; block < model.blocks.size(); ++block) {
    hidden = model::forward_only(*model.blocks[block], hidden, whole, parameters.of_block(block));
  }
  return kernels::sum_of(nn::floats_of(nn::head_loss(hidden, parameters.head(), batch.targets)));
}

EvaluationResult evaluate(const model::Model& model, const model::Parameters& parameters,
                          const EvaluationOptions& options) {
  const data::Windows windows = open_windows(options.corpus, options.vocabulary, options.length);
  auto sequences = static_cast<std::int64_t>(windows.count());
  if (options.max_sequences > 0) sequences = std::min(sequences, options.max_sequences);
  double sum = 0;
  for (std::int64_t first = 0; first < sequences; first += options.rows) {
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
