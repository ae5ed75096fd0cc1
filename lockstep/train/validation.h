// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/communicator.h"
#include "lockstep/model/parameters.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/feed.h"

namespace lockstep::train {

// Where the data come from. Opening it may fail.
Feed::Options validation_feed(const spec::RunSpec& run);

// The loss on data that is not trained on: always the same micro-batches, dealt out to the ranks.
class Validation {
 public:
  // Everything referred to must outlive it. `values` are the flat parameters that blocks compute with.
  Validation(const spec::RunSpec& run, const Feed& feed, const model::Model& model,
             const model::FlatLayout& layout, const at::Tensor& values,
             const comm::Communicator& communicator);

  // The mean over all tokens, in nats; the same bits on any number of ranks.
  double loss() const;

 private:
  double loss_sum_of(int micro_batch) const;

  const model::Model& model_;
  comm::Communicator communicator_;
  const Feed& feed_;
  model::Parameters parameters_;
  int micro_batches_;
  double tokens_;
};

}  // namespace lockstep::train
