// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/model/block.h"
#include "lockstep/model/parameters.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::train {

// The batch as evaluation takes it: nothing of it is dropped.
model::Batch without_dropout(model::Batch batch);

// The output of a run of blocks; nothing is recorded.
at::Tensor forward_through(const model::Model& model, const model::Parameters& parameters,
                           const model::Batch& batch, const schedule::Chunk& blocks, at::Tensor hidden);

// The sum of the losses of all targets of a batch, in nats, from what the last block made of it.
double loss_sum_of_hidden(const at::Tensor& hidden, const nn::DividedHead& head, const model::Batch& batch);

// All of these, for a whole model.
double loss_sum(const model::Model& model, const model::Parameters& parameters, const model::Batch& batch);

struct EvaluationOptions {
  std::string corpus;
  std::int64_t vocabulary = 0;
  std::int64_t length = 0;                  // of a sequence
  std::int64_t rows = 8;                    // sequences at a time
  std::int64_t max_sequences = 0;           // 0: all of the corpus
  std::function<void()> between = nullptr;  // called now and then; what it raises goes on
};

struct EvaluationResult {
  double loss = 0;  // mean over the tokens, in nats
  std::int64_t tokens = 0;
};

// The loss over the corpus, cut into sequences in its own order; what does not fill a last one is left out.
// UsageError when the corpus has no sequence, DataError when it is corrupt.
EvaluationResult evaluate(const model::Model& model, const model::Parameters& parameters,
                          const EvaluationOptions& options);

}  // namespace lockstep::train
