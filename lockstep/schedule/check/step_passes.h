// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lockstep/schedule/check/step.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::schedule {

// The half of check_step() that follows micro-batches through the blocks of a rank. One call for every action
// of its kind, in the order of the program; StepWrong for the first that is wrong.
class PassChecker {
 public:
  explicit PassChecker(const StepSpec& spec);

  void begin_lane(const Action& action);  // clear
  void pass_on(const Action& action);     // receive and send
  void forward(const Action& action);
  void lose(const Action& action);
  void recompute(const Action& action);
  // Also its halves. True when the lane has all its gradients of the block from now on.
  bool backward(const Action& action);
  bool add_weights(const Action& action);
  // Of a tied head. The lane has all its gradients of block 0 once it is settled.
  void send_head_gradient(const Action& action);
  void receive_head_gradient(const Action& action);
  void settle(const Action& action);
  // It is updated here and used by the head elsewhere, or the other way round.
  bool sends_head() const { return spec_.tied && first_part_ && !last_part_; }
  bool receives_head() const { return spec_.tied && last_part_ && !first_part_; }

  const Stage& stage() const { return stage_; }
  bool all_passes_are_done() const;
  int chunk_of_block(int block) const;
  const Chunk& chunk(int number) const;
  // Whose weights the loss computes with.
  int block_of_head() const { return spec_.tied && first_part_ ? 0 : spec_.blocks - 1; }
  const StepCost& cost() const { return cost_; }  // but for slots and buckets

 private:
  // How far a micro-batch has come on a chunk.
  struct Progress {
    int forward = 0;   // the next block
    int backward = 0;  // the next block, on the way down
    int weight = 0;    // the next block whose weights get their gradients
    bool received_activation = false;
    bool sent_activation = false;
    bool lost = false;
    bool received_gradient = false;
    bool sent_gradient = false;
    std::vector<bool> recorded = {};  // by block of the chunk: its pass exists
  };
  // What the messages of a pass are like.
  struct Neighbours {
    bool receives = false;
    bool sends = false;
  };
  // Where an action stands.
  struct Site {
    int micro_batch = 0;  // counted over all lanes
    int number = 0;       // of the chunk
    const Chunk& held;
    Progress& state;
  };

  // What has become of a lane's gradient of the tied head.
  struct HeadGradient {
    int losses = 0;     // micro-batches whose loss is computed
    bool sent = false;  // or received
    bool settled = false;
  };

  int number_of(const Action& action) const;
  HeadGradient& head_gradient(const Action& action);
  void require_slot(const Action& action, int number) const;
  void require_cleared(const Action& action, int number) const;
  void bind_slot(const Action& action, int number);
  Site site_of_block(const Action& action, int block);
  Progress& progress(int number, int micro_batch);
  bool is_done(int lane, int number) const;
  void enter(Pass pass, const Site& site);
  void leave();
  Neighbours neighbours_of(const PipelineEntry& entry) const;
  Pass way_back_due(const Site& site) const;
  void require_gradient(const Action& action, const Site& site);
  void keep(int block, const Site& site, bool recorded);
  bool finish_weights(const Action& action, const Site& site);
  BlockMemory memory(int block) const;
  std::uint64_t input_bytes(const Chunk& held) const;

  const StepSpec& spec_;
  const Stage stage_;
  const std::optional<int> first_part_;  // the chunk that it is
  const std::optional<int> last_part_;
  StepCost cost_;
  std::vector<std::vector<Progress>> progress_;   // by chunk and micro-batch
  std::vector<std::map<int, int>> slot_of_lane_;  // by chunk
  std::vector<std::set<int>> cleared_;            // by chunk: lanes
  std::vector<int> due_weights_;                  // by chunk: the micro-batch that adds its gradients next
  std::map<int, HeadGradient> head_gradients_;    // by lane
  std::optional<PipelineEntry> under_way_;
  PipelineProgram passes_;   // that have ended
  int passes_kept_ = 0;      // of blocks
  int inputs_ = 0;           // of blocks, without their passes
  std::uint64_t bytes_ = 0;  // of both
};

}  // namespace lockstep::schedule
