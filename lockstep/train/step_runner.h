// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/model/block.h"
#include "lockstep/model/pass.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/gradient_sum.h"
#include "lockstep/train/gradients.h"
#include "lockstep/train/partition.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// How a step is cut; the same on all ranks.
struct StepPlan {
  LaneOwnership lanes;
  int micro_batches = 1;  // of each lane
  int recompute_every = 0;
  SumOptions sum = {};
};

// Told about every action of the program after it.
using ActionObserver =
    std::function<void(const schedule::Action&, Clock::time_point began, Clock::time_point ended)>;

// What a step is done with.
struct StepInputs {
  std::function<model::Batch(int lane, int micro_batch)> batch;
  float loss_scale =
      1.0F;  // what the loss of a token is multiplied by before going back: 1 / tokens, and more
  float gradient_scale = 1.0F;  // what undoes the rest of it before the update
  double max_norm = 0.0;        // of all gradients together; 0: not limited
  OptimizerStep optimizer;
  ActionObserver observe = nullptr;
};

struct StepResult {
  double loss_sum = 0;       // over all tokens of all lanes, in the order of the lane tree
  double gradient_norm = 0;  // before clipping
  bool updated = false;      // false: a gradient was not finite, and nothing was changed
  // Then: the parameter that was the first on the way back to get such a gradient.
  std::optional<std::size_t> not_finite = std::nullopt;
  double compute_seconds = 0;  // in which this rank computed its lanes, and did not wait
};

// Runs the step program of this rank. The bits of weights and results do not depend on who owns which lanes.
class StepRunner {
 public:
  // Proves the program first: InternalError if it is refused. Everything referred to must outlive this.
  StepRunner(const model::Model& model, const model::FlatLayout& layout, const Partition& partition,
             const comm::Communicator& communicator, Weights& weights, StepPlan plan);

  StepResult run(const StepInputs& inputs);

  // The gradients that the last step has updated with, before their scale and clipping, until the next
  // begins. All ranks call it together.
  at::Tensor gather_gradients() const;

  // Deals out the lanes anew, between steps; on all ranks alike.
  void assign(const LaneOwnership& lanes);
  const LaneOwnership& lanes() const { return plan_.lanes; }

 private:
  void play(const schedule::Action& action, const StepInputs& inputs);
  void forward(const schedule::Action& action, const StepInputs& inputs);
  void lose(const schedule::Action& action, const StepInputs& inputs);
  void recompute(const schedule::Action& action);
  void backward(const schedule::Action& action);
  void reduce(int bucket);
  void share_losses();
  void clip(const StepInputs& inputs);
  std::optional<std::size_t> first_not_finite() const;
  void update(int bucket, const StepInputs& inputs);
  void gather(int bucket);

  std::size_t blocks_of_squares() const { return partition_.elements / kernels::kSquaresBlock; }
  // The gradients that this rank updates with.
  std::span<float> own_gradients(std::size_t bucket) const {
    return slots_.floats(result_slot(), partition_.own[bucket]);
  }
  int result_slot() const { return program_.piece_slots.empty() ? 0 : program_.piece_slots.front(); }

  const model::Model& model_;
  const model::FlatLayout& layout_;
  const Partition& partition_;
  comm::Communicator communicator_;
  Weights& weights_;
  StepPlan plan_;
  GradientSlots slots_;

  // --- Of the lanes.
  schedule::StepProgram program_;
  std::optional<GradientSum> sum_;

  // --- Of the step under way.
  model::Batch batch_;
  std::vector<model::BlockPass> passes_;  // by block
  std::vector<at::Tensor> inputs_;        // by block: of those that will be computed again
  at::Tensor hidden_;                     // the output of the last block that ran
  at::Tensor gradient_;                   // that of the input of the last block gone back through
  std::vector<double> lane_losses_;       // by lane
  std::vector<comm::Work> works_;         // by bucket: its gradients, then its weights
  double gradient_factor_ = 1.0;
  StepResult result_;
};

}  // namespace lockstep::train
