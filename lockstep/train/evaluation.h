// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/model/block.h"
#include "lockstep/model/parameters.h"

namespace lockstep::train {

// The sum of the losses of all targets of a batch, in nats. Nothing is recorded or dropped.
double loss_sum(const model::Model& model, const model::Parameters& parameters, const model::Batch& batch);

struct EvaluationOptions {
  std::string corpus;
  std::int64_t vocabulary = 0;
  std::int64_t length = 0;         // of a sequence
  std::int64_t rows = 8;           // sequences at a time
  std::int64_t max_sequences = 0;  // 0: all of the corpus
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
