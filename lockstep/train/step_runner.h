// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/model/block.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/bucket_sum.h"
#include "lockstep/train/gradients.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/pass_runner.h"
#include "lockstep/train/pass_spans.h"
#include "lockstep/train/phases.h"
#include "lockstep/train/step_program.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// Told about every action of the program after it.
using ActionObserver =
    std::function<void(const schedule::Action&, Clock::time_point began, Clock::time_point ended)>;

struct StepResult {
  double loss_sum = 0;       // over all tokens of all lanes, in the order of the lane tree
  double gradient_norm = 0;  // before clipping
  bool updated = false;      // false: a gradient was not finite, and nothing was changed
  // Then: the parameter of the whole layout that was the first on the way back to get such a gradient.
  std::optional<std::size_t> not_finite = std::nullopt;
  PhaseTimes times = {};  // of this rank
};

// What a step is done with.
struct StepInputs {
  BatchSource batch;
  float loss_scale =
      1.0F;  // what the loss of a token is multiplied by before going back: 1 / tokens, and more
  float gradient_scale = 1.0F;  // what undoes the rest of it before the update
  double max_norm = 0.0;        // of all gradients together; 0: not limited
  OptimizerStep optimizer;
  // When the step can be applied and nothing of it was: returns when it is to be, on all ranks.
  std::function<void(const StepResult& result)> agree = nullptr;
  // Gets on with every action, and every batch that is read. Null: nobody asks.
  elastic::Activity* activity = nullptr;
  ActionObserver observe = nullptr;
};

// Runs the step program of this rank. The bits of weights and results do not depend on who owns which lanes
// and which blocks.
class StepRunner {
 public:
  // Proves the program first: InternalError if it is refused. Everything referred to must outlive this.
  StepRunner(const model::Model& model, const Holding& holding, BufferPool& pool, Weights& weights,
             StepPlan plan);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  // As StageMail: cancels what is under way when an exception has ended a step.
  ~StepRunner();

  StepResult run(const StepInputs& inputs);

  // What run() has agreed on and not applied, because an exception has ended it, or agreeing itself: applied
  // now, to this rank's shares, without the others.
  void apply_rest();
  // What the update of the step is done with, from the moment that ranks agree on it: by bucket the gradients
  // of this rank's share, and what they are multiplied by.
  std::vector<std::span<const float>> shares_of_gradients() const;
  float gradient_factor() const { return static_cast<float>(gradient_factor_); }

  // The gradients that the last step has updated with, before their scale and clipping, until the next
  // begins, in the layout of the whole model. All ranks call it together.
  at::Tensor gather_gradients() const;

  // Deals out the lanes anew, between steps; on all ranks alike.
  void assign(const LaneOwnership& lanes);
  const LaneOwnership& lanes() const { return plan_.lanes; }
  // Of this rank, in a step.
  PassesOfStep passes() const;

 private:
  void play(const schedule::Action& action, const StepInputs& inputs);
  void clear(const schedule::Action& action);
  void finish(int bucket);
  // Waits for a sum, and keeps what is this rank's share of it.
  void keep_sum(std::size_t bucket);
  void sum_shared(const schedule::Action& action);
  void send_head_gradient(const schedule::Action& action);
  void await_head_gradient(const schedule::Action& action);  // until it is received, or sent
  void send_head();
  void receive_head();
  void reduce(int bucket);
  void add_hosts(int bucket);
  void share_losses();
  void clip(const StepInputs& inputs);
  std::optional<std::size_t> first_not_finite() const;
  void agree(const StepInputs& inputs);
  void update(int bucket);
  void read_ahead(int bucket);
  void gather(int bucket);

  Rank holder_of_part(int part) const { return program_.stage.placement.holder_of(part).rank; }
  int last_part() const { return program_.stage.placement.parts() - 1; }
  // Of a tied head, owned or borrowed, in each tensor lane.
  std::vector<Range> head_elements() const;
  // The gradients that this rank updates with.
  std::span<const float> own_gradients(std::size_t bucket) const;
  const std::vector<int>& piece_slots(std::size_t bucket) const;
  int result_slot(std::size_t bucket) const;

  const model::Model& model_;
  const Holding& holding_;
  const Partition& partition_;  // of the holding
  Weights& weights_;
  StepPlan plan_;
  GradientSlots slots_;
  PassRunner passes_;

  // --- Of the lanes.
  StepProgram program_;
  std::optional<BucketSum> sum_;

  // --- Of the step under way.
  // By slot: on the way from or to the other end of the pipeline, a message for each tensor lane.
  std::map<int, std::vector<comm::Work>> head_gradients_;
  std::vector<double> lane_losses_;  // by lane
  std::vector<comm::Work> works_;    // by bucket: its gradients, then its weights
  double gradient_factor_ = 1.0;
  OptimizerStep optimizer_;
  std::vector<bool> is_updated_;  // by bucket
  StepResult result_;
};

}  // namespace lockstep::train
