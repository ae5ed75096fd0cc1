// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/model/block.h"
#include "lockstep/model/pass.h"
#include "lockstep/nn/additions.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/gradients.h"
#include "lockstep/train/stage_mail.h"
#include "lockstep/train/step_program.h"

namespace lockstep::train {

// The batch of a micro-batch of a lane.
using BatchSource = std::function<model::Batch(int lane, int micro_batch)>;

// Takes micro-batches through the blocks of a stage and back. One call for every action of its kind, in the
// order of the step program.
class PassRunner {
 public:
  // Everything referred to must outlive this. `hidden` are the sizes of what stages send each other.
  PassRunner(const model::Model& model, const Holding& holding, const GradientSlots& slots,
             std::vector<std::int64_t> hidden, at::ScalarType type);

  // A step with this program begins. The losses of lanes are added to `lane_losses`.
  struct Step {
    const StepProgram& program;
    int first_lane = 0;  // of this rank
    int lanes = 0;
    int micro_batches = 1;  // of each lane
    BatchSource batch;
    float loss_scale = 1.0F;
    std::vector<double>& lane_losses;
  };
  void begin(const Step& step);

  void forward(const schedule::Action& action);
  void lose(const schedule::Action& action);
  void recompute(const schedule::Action& action);
  void backward(const schedule::Action& action);  // whole, or the half for the input
  void backward_weight(const schedule::Action& action);
  void settle(const schedule::Action& action) { put_off_[action.lane].run(); }
  void receive(const schedule::Action& action);
  void send(const schedule::Action& action);

  // Waits until everything is sent.
  void finish() { mail_.finish(); }

 private:
  // What a micro-batch leaves on this rank between its passes.
  struct InFlight {
    model::Batch batch;
    std::vector<model::BlockPass> passes;  // by block
    std::vector<at::Tensor> inputs;        // by block: of those that will be computed again
    std::vector<nn::Additions> additions;  // by block: what backward_input has left for backward_weight
    std::vector<at::Tensor> activations;   // by chunk: what its first block reads
    std::vector<at::Tensor> gradients;     // by chunk: of what its last block has made
    std::size_t chunks_done = 0;           // that have added all their gradients
  };

  const schedule::Stage& stage() const { return step_->program.stage; }
  InFlight& in_flight(const schedule::Action& action);
  int number_of(const schedule::Action& action) const;
  schedule::PipelineMessage message_of(const schedule::Action& action) const;
  void end_chunk(InFlight& flight) const;

  const model::Model& model_;
  const Holding& holding_;
  const GradientSlots& slots_;
  const bool tied_;
  StageMail mail_;
  std::optional<Step> step_;
  std::vector<InFlight> in_flight_;       // by micro-batch, counted over all lanes of the rank
  std::map<int, nn::Additions> put_off_;  // by lane: what block 0 adds once the lane is settled
  at::Tensor hidden_;                     // the output of the last block that ran
  at::Tensor gradient_;                   // that of the input of the last block gone back through
};

// The chunk that has the block.
std::size_t chunk_of_block(const schedule::Stage& stage, int block);

}  // namespace lockstep::train
