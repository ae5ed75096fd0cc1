// SPDX-License-Identifier: Apache-2.0
//
// A training step as data: the program of one rank, a list of actions. make_step() returns it, check_step()
// proves it, train/ runs it, and a trace shows when each action ran.
//
// The rank owns a run of lanes and computes them one after the other. The gradient of a lane is summed in a
// *slot*, a buffer for the gradients of all parameters. Lanes that are neighbours in the tree over all lanes
// are added as soon as both are there, so the slots in use are those of the few subtrees that the lanes so
// far make up. Parameters are cut into *buckets*: the gradients of a bucket are added and reduced over the
// ranks while the blocks before it still compute. The ranks may share out the update: each updates its share
// of every bucket, and gets the others' from them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::schedule {

enum class Act : std::uint8_t {
  clear,      // slot: a lane begins
  forward,    // lane, micro_batch, block, slot; `keeps`: the recorded pass stays for the way back, otherwise
              // its input only
  loss,       // lane, micro_batch, slot: the head forward and backward in one
  recompute,  // lane, micro_batch, block, slot: forward once more, recorded
  backward,   // lane, micro_batch, block, slot
  merge,      // bucket, slot, from_slot: the gradients of the lower subtree += those of the upper one
  reduce,     // bucket: starts the sum over all ranks; the result, or this rank's share of it, will be in the
              // first piece's slot
  share_losses,  // the losses of all lanes become known to all ranks
  finish,        // bucket: waits for its sum
  clip,          // the norm of all gradients, and the factor that follows
  update,        // bucket: the optimizer, for this rank's share
  gather,        // bucket: starts getting the other ranks' shares of the new weights
  arrive,        // bucket: waits for them
};
std::string_view name_of(Act act);

struct Action {
  Act act = Act::clear;
  int lane = -1;
  int micro_batch = -1;
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

struct StepSpec {
  int blocks = 1;      // of the model; the head is not one of them
  int first_lane = 0;  // the rank owns lanes [first_lane, end_lane), possibly none
  int end_lane = 1;
  int micro_batches = 1;  // of each lane
  // Blocks whose passes are not kept but computed again: none (0), every one (1), every n-th (n).
  int recompute_every = 0;
  bool shards_update = false;
  // By bucket: the block whose backward pass is the last to add to its gradients.
  std::vector<int> bucket_blocks = {0};
  // By block, for the check to predict the memory of a step; empty: not known.
  std::vector<BlockMemory> block_memory = {};

  bool recomputes(int block) const { return recompute_every > 0 && block % recompute_every == 0; }
};

struct StepProgram {
  std::vector<Action> actions;
  int slots = 1;  // how many gradient buffers it uses
  std::vector<int>
      piece_slots;  // where the complete subtrees of the rank's lanes are in the end, in lane order
};

StepProgram make_step(const StepSpec& spec);

}  // namespace lockstep::schedule
