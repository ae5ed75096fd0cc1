// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/model/block.h"
#include "lockstep/model/pass.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/buckets.h"
#include "lockstep/train/gradients.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// How a step is cut; the same on all ranks.
struct StepPlan {
  LaneOwnership lanes;
  int micro_batches = 1;  // of each lane
  int recompute_every = 0;
  std::int64_t bucket_elements = std::int64_t{4} << 20;
};

// What a step is done with.
struct StepInputs {
  std::function<model::Batch(int lane, int micro_batch)> batch;
  float loss_scale =
      1.0F;  // what the loss of a token is multiplied by before going back: 1 / tokens, and more
  float gradient_scale = 1.0F;  // what undoes the rest of it before the update
  double max_norm = 0.0;        // of all gradients together; 0: not limited
  OptimizerStep optimizer;
};

struct StepResult {
  double loss_sum = 0;       // over all tokens of all lanes, in the order of the lane tree
  double gradient_norm = 0;  // before clipping
  bool updated = false;      // false: a gradient was not finite, and nothing was changed
};

// Runs the step program of this rank. The bits of weights and results do not depend on who owns which lanes.
class StepRunner {
 public:
  // Proves the program first: InternalError if it is refused. Everything referred to must outlive this.
  StepRunner(const model::Model& model, const model::FlatLayout& layout,
             const comm::Communicator& communicator, Weights& weights, StepPlan plan);

  StepResult run(const StepInputs& inputs);

 private:
  void play(const schedule::Action& action, const StepInputs& inputs);
  void forward(const schedule::Action& action, const StepInputs& inputs);
  void lose(const schedule::Action& action, const StepInputs& inputs);
  void recompute(const schedule::Action& action);
  void backward(const schedule::Action& action);
  void reduce(int bucket);
  void share_losses();
  void clip(const StepInputs& inputs);
  void update(const StepInputs& inputs);

  int result_slot() const { return program_.piece_slots.empty() ? 0 : program_.piece_slots.front(); }

  const model::Model& model_;
  comm::Communicator communicator_;
  Weights& weights_;
  StepPlan plan_;
  std::vector<Bucket> buckets_;
  comm::LanePieces pieces_;
  schedule::StepProgram program_;
  GradientSlots slots_;

  // --- Of the step under way.
  model::Batch batch_;
  std::vector<model::BlockPass> passes_;  // by block
  std::vector<at::Tensor> inputs_;        // by block: of those that will be computed again
  at::Tensor hidden_;                     // the output of the last block that ran
  at::Tensor gradient_;                   // that of the input of the last block gone back through
  std::vector<double> lane_losses_;       // by lane
  std::vector<comm::Work> works_;         // by bucket
  double gradient_factor_ = 1.0;
  StepResult result_;
};

}  // namespace lockstep::train
