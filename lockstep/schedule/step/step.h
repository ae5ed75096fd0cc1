// SPDX-License-Identifier: Apache-2.0
//
// A training step as data: the program of one rank, a list of actions. make_step() returns it, check_step()
// proves it, train/ runs it, and a trace shows when each action ran.
//
// The rank owns a run of lanes. It holds the whole model and computes its micro-batches one after the other,
// or it is a stage of a pipeline, holds chunks of the model, and computes their passes in the order of the
// pipeline's program (pipeline/pipeline.h). The gradient of a lane is summed in a *slot*, a buffer for the
// gradients of all parameters of the rank. Lanes that are neighbours in the tree over all lanes are added as
// soon as both are there, so the slots in use are those of the few subtrees that the lanes so far make up,
// and of the lanes that are under way. Parameters are cut into *buckets*: the gradients of a bucket are added
// and reduced over the ranks while other blocks still compute. The ranks may share out the update: each
// updates its share of every bucket, and gets the others' from them. When they share it out inside each host
// only, every host has a copy: gradients are then summed in two steps, inside hosts and over them.
//
// Ranks may also share out the gradients and the weights. The memory of a gradient is then there from the
// first addition to it until its sum is shared out, and that of weights from fetching them until they are
// dropped. So that both are short, such a rank computes breadth first: each chunk of its blocks with all
// micro-batches before the next one.
//
// A *tied* head computes with a parameter of block 0, whose gradient has two sources then. It is summed in
// one order wherever the two are: of each lane first what the head adds, micro-batch by micro-batch, then
// what block 0 adds, likewise. So block 0 puts its additions off until the lane ends. When the two are on
// different stages, the one with the loss has a copy of the parameter: it sends the head's gradient of each
// lane to the other, which updates the parameter and sends it back.
//
// Layers may be computed in *tensor lanes* (nn/lanes.h), by one rank or by several that all run this program.
// What their lanes share is summed over them as soon as a lane of the batch has all its gradients of a block,
// before it is added to those of other lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

enum class Act : std::uint8_t {
  clear,               // lane, chunk, slot: a lane begins to add to the gradients of a chunk
  fetch,               // bucket: starts getting the weights from the ranks that share them
  use,                 // bucket: waits for them
  drop,                // bucket: they are not needed for now
  receive_activation,  // lane, micro_batch, chunk: waits for the input of the chunk's first block
  forward,             // lane, micro_batch, block, slot; `keeps`: the recorded pass stays for the way back,
                       // otherwise its input only
  send_activation,     // lane, micro_batch, chunk: the output of its last block, to the next part
  loss,                // lane, micro_batch, slot: the head forward and backward in one
  receive_gradient,    // lane, micro_batch, chunk: waits for that of the output of its last block
  recompute,           // lane, micro_batch, block, slot: forward once more, recorded
  backward,            // lane, micro_batch, block, slot
  backward_input,      // the same, without the gradients of weights; what they are made from stays
  backward_weight,     // lane, micro_batch, block, slot: what backward_input has left out
  send_gradient,       // lane, micro_batch, chunk: that of the input of its first block, to the part before
  send_head_gradient,  // lane, slot: that of the tied head, to the stage that has the first block
  receive_head_gradient,  // lane, slot: waits for it
  settle,      // lane, slot: the gradients that block 0 has put off are added on top of the tied head's
  sum_shared,  // lane, block, slot: those of parameters that several tensor lanes share become their sums
  merge,       // bucket, slot, from_slot: the gradients of the lower subtree += those of the upper one
  reduce,     // bucket: starts the sum over all ranks; the result, or this rank's share of it, will be in the
              // first piece's slot
  add_hosts,  // bucket, when hosts have copies: waits for the sum inside the host, starts adding those of
              // all hosts
  share_losses,  // the losses of all lanes become known to all ranks
  finish,        // bucket: waits for its sum
  clip,          // the norm of all gradients, and the factor that follows
  agree,         // all ranks can apply the step, and none has begun to: either all will, or none
  update,        // bucket: the optimizer, for this rank's share
  gather,        // bucket: starts getting the other ranks' shares of the new weights
  arrive,        // bucket: waits for them
  send_head,     // the new weights of the tied head, to the stage with the loss
  receive_head,  // waits for them
};
std::string_view name_of(Act act);

struct Action {
  Act act = Act::clear;
  int lane = -1;
  int micro_batch = -1;
  int chunk = -1;
  int block = -1;
  int bucket = -1;
  int slot = -1;
  int from_slot = -1;
  bool keeps = false;

  bool operator==(const Action&) const = default;
};

// What one micro-batch needs in memory at a block, in bytes.
struct BlockMemory {
  std::uint64_t output = 0;  // what the next block reads
  std::uint64_t inner = 0;   // what a recorded pass keeps beside its output
  std::uint64_t work = 0;    // what is there in addition while the block is gone back through

  bool operator==(const BlockMemory&) const = default;
};

// What a bucket needs in memory while it is there, in bytes. What it leaves waits for the next that needs as
// many.
struct BucketMemory {
  std::uint64_t weights = 0;
  std::uint64_t gradients = 0;  // in one slot

  bool operator==(const BucketMemory&) const = default;
};

// A run of blocks.
struct Chunk {
  int first_block = 0;
  int end_block = 1;

  bool operator==(const Chunk&) const = default;
};

// What a rank of a pipeline holds and computes.
struct Stage {
  Placement placement;
  Rank rank = 0;                // among the stages
  std::vector<Chunk> chunks;    // by number; the parts of all stages together are the model
  PipelineProgram passes = {};  // micro-batches are counted over all lanes of the rank

  bool operator==(const Stage&) const = default;
};

struct StepSpec {
  int blocks = 1;      // of the model; the head is not one of them
  int first_lane = 0;  // the rank owns lanes [first_lane, end_lane), possibly none
  int end_lane = 1;
  int micro_batches = 1;  // of each lane
  // Blocks whose passes are not kept but computed again: none (0), every one (1), every n-th (n).
  int recompute_every = 0;
  bool shards_update = false;
  bool shards_gradients = false;  // implies the former
  bool shards_weights = false;    // implies both
  bool copies_on_hosts = false;   // what is shared out is so inside each host; implies shards_update
  bool tied = false;
  bool sums_shared = false;  // there are tensor lanes
  // None: the rank holds the whole model.
  std::optional<Stage> stage = {};
  // By bucket: the block (of the rank) whose backward pass is the last to add to its gradients.
  std::vector<int> bucket_blocks = {0};
  // By block, for the check to predict the memory of a step; empty: not known.
  std::vector<BlockMemory> block_memory = {};
  // By bucket, when gradients are shared out: of what comes and goes in a step; empty: not counted.
  std::vector<BucketMemory> bucket_memory = {};

  bool recomputes(int block) const { return recompute_every > 0 && block % recompute_every == 0; }
};

struct StepProgram {
  std::vector<Action> actions;
  int slots = 1;  // how many gradient buffers it uses
  // By chunk: where the complete subtrees of the rank's lanes are in the end, in lane order.
  std::vector<std::vector<int>> piece_slots;
};

// That of the spec, or the one of a rank with the whole model.
Stage stage_of(const StepSpec& spec);

// That of a rank with the whole model which computes breadth first: every chunk forward with all
// micro-batches, then every chunk backward, likewise.
Stage breadth_first_stage(std::vector<Chunk> chunks, int micro_batches);

// The chunk of the stage that is this part of the model; none: another stage has it.
std::optional<int> chunk_of_part(const Stage& stage, int part);

// The chunk of the stage that is the part next to this one, up (1) or down (-1) the model; none likewise.
std::optional<int> own_neighbour(const Stage& stage, int chunk, int direction);

StepProgram make_step(const StepSpec& spec);

}  // namespace lockstep::schedule
