// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/elastic/activity.h"
#include "lockstep/model/parameters.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// Where the data come from. Opening it may fail.
Feed::Options validation_feed(const spec::RunSpec& run);

// The loss on data that is not trained on: always the same micro-batches, dealt out to the data-parallel
// ranks.
class Validation {
 public:
  // Everything referred to must outlive it.
  Validation(const spec::RunSpec& run, const Feed& feed, const model::Model& model, const Holding& holding,
             const plan::PipelinePlan& plan, Weights& weights);

  // Gets on with every micro-batch and chunk of the model; null: nobody asks.
  void watch(elastic::Activity* activity) { activity_ = activity; }

  // The mean over all tokens, in nats; the same bits on any number of ranks. Asks `leaves`, which may
  // communicate and must answer the same on all ranks, now and then, after the same micro-batches on all:
  // none when it is true once.
  std::optional<double> loss(const std::function<bool()>& leaves);

 private:
  // The sums of the losses of these micro-batches, by number. All ranks call it together, with or without
  // any. Of a whole model: chunk by chunk, so that weights that are shared out are there for a moment only.
  void add_chunk_by_chunk(std::span<const int> micro_batches, std::span<double> sums);
  void add_as_stage(std::span<const int> micro_batches, std::span<double> sums);
  // None when the micro-batch ends on another stage.
  std::optional<double> loss_sum_of(int micro_batch) const;
  model::Batch batch(int micro_batch) const;
  at::Tensor receive_hidden(Rank from, const model::Batch& batch) const;

  void get_on() const {
    if (activity_ != nullptr) activity_->get_on();
  }

  const model::Model& model_;
  const Holding& holding_;
  plan::PipelinePlan plan_;
  const Feed& feed_;
  Weights& weights_;
  model::Parameters parameters_;
  int micro_batches_;
  double tokens_;
  elastic::Activity* activity_ = nullptr;
};

}  // namespace lockstep::train
