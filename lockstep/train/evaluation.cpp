// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/evaluation.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/train/feed.h"

namespace lockstep::train {
namespace {

model::Batch batch_of(const data::Windows& windows, std::int64_t first, std::int64_t rows,
                      std::int64_t length) {
  const at::Tensor window = at::empty({rows, length + 1}, at::kInt);
  auto* tokens = reinterpret_cast<data::Token*>(window.data_ptr<std::int32_t>());
  const auto width = static_cast<std::size_t>(length) + 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    windows.read(static_cast<std::uint64_t>(first + row),
                 {tokens + static_cast<std::size_t>(row) * width, width});
  }
  return {window.narrow(1, 0, length).contiguous(), window.narrow(1, 1, length).contiguous()};
}

}  // namespace

double loss_sum(const model::Model& model, const model::Parameters& parameters, const model::Batch& batch) {
  at::Tensor hidden;
  for (std::size_t block = 0; block < model.blocks.size(); ++block) {
    hidden = model::forward_only(*model.blocks[block], hidden, batch, parameters.of_block(block));
  }
  return kernels::sum_of(nn::floats_of(nn::head_loss(hidden, parameters.head(), batch.targets)));
}

EvaluationResult evaluate(const model::Model& model, const model::Parameters& parameters,
                          const EvaluationOptions& options) {
  const data::Windows windows =
      open_windows(options.corpus, {.vocabulary = options.vocabulary, .length = options.length});
  auto sequences = static_cast<std::int64_t>(windows.count());
  if (options.max_sequences > 0) sequences = std::min(sequences, options.max_sequences);
  double sum = 0;
  for (std::int64_t first = 0; first < sequences; first += options.rows) {
    const std::int64_t rows = std::min(options.rows, sequences - first);
    sum += loss_sum(model, parameters, batch_of(windows, first, rows, options.length));
  }
  const std::int64_t tokens = sequences * options.length;
  return {.loss = sum / static_cast<double>(tokens), .tokens = tokens};
}

}  // namespace lockstep::train
