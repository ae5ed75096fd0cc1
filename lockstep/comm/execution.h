// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"
#include "lockstep/comm/script.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/schedule/collective/program.h"
#include "lockstep/transport/channel.h"

namespace lockstep::comm {

// A channel with the number of messages posted on it so far, over all operations of its stream.
struct Port {
  transport::Channel* channel = nullptr;  // null for the rank itself
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

// What a program is run with.
struct Binding {
  std::shared_ptr<const Script> script;  // shared with the plan
  std::span<Port> ports;                 // by rank of the program; must outlive the run
  std::vector<std::byte*> buffers;       // one for each buffer of the program, scratch included
  std::vector<std::byte*> spills;        // one for each spill of the script
  std::vector<Bytes> scratch;            // the memory of spills and of those buffers that are scratch
  transport::Envelope envelope;
  kernels::Combination arithmetic;  // divide_by: what finished values are divided by
};

// Whom an execution waits for, and how far the transfer is.
struct Waiting {
  Rank peer = -1;
  std::size_t done_bytes = 0;
  std::size_t total_bytes = 0;
};

// Runs the program of one rank on its channels, step by step and without blocking. May be used again for the
// next program: what it has allocated stays. Collectives that share ports run one after the other.
class Execution {
 public:
  // To be filled in before start(). What it refers to must outlive the run.
  Binding binding;

  // Makes ready to run what is bound from its beginning.
  void start();

  // Does what can be done now; true if anything moved. Throws what Channel throws.
  bool advance();

  bool done() const { return round_ == binding.script->rounds().size(); }

  // How much of peers' memory it has read or written where it lies, in all its runs; with what it has copied
  // for others on the same ports.
  std::uint64_t peer_bytes() const { return peer_bytes_; }

  // Every message of this round that is not done and that a peer must do something for. For a stalled
  // execution.
  std::vector<Waiting> waiting() const;

  // Lets go of what belongs to the run that has ended.
  void release();

  // After a failure: this rank does not touch posted memory any more once this returns.
  void abandon();
  // After abandon(): waits until no peer writes to posted memory any more, but not for a frozen one.
  void settle(const Deadline& patience) const;

 private:
  enum class Stage : std::uint8_t { waiting, fired, offered };

  // The states of the current round, parallel to the vectors of its script.
  struct StepState {
    std::size_t elements_done = 0;
    Stage stage = Stage::waiting;
  };
  struct TargetState {
    Bytes landing = {};    // written in place while combining; empty: sent from the destination
    bool decided = false;  // whether to use the landing
    bool offered = false;
  };
  // How many messages had passed the port each way when the round began.
  struct PeerState {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };

  const Script::Round& round() const { return binding.script->rounds()[round_]; }
  void start_round();
  void post_receives(const Script::Step& step);
  bool advance_round();
  bool pump(transport::Channel& channel);
  bool round_finished() const;
  bool waits_for_others(Rank peer) const;
  bool fire(const Script::Step& step, StepState& state);
  bool fire_received(const Script::Step& step, StepState& state);
  bool combine_available(const Script::Step& step, StepState& state);
  std::size_t available(const Script::Step& step, const StepState& state);
  void decide_landings(const Script::Step& step);
  bool all_received(const Script::Step& step) const;
  bool offer(const Script::Step& step, StepState& state);
  bool may_offer(const Script::Target& target) const;

  // The number of a message among all that have passed its port.
  std::uint64_t number_of(const Script::Source& source) const {
    return peers_[source.peer].received + source.message;
  }
  std::uint64_t number_of(const Script::Target& target) const {
    return peers_[target.peer].sent + target.message;
  }
  std::byte* address(const schedule::Slice& slice) const {
    return binding.buffers[slice.buffer] + bytes(slice.range.begin);
  }
  std::size_t bytes(std::size_t elements) const { return elements * element_bytes_; }

  std::uint64_t peer_bytes_ = 0;
  std::size_t element_bytes_ = 1;
  std::size_t round_ = 0;
  bool started_ = false;

  std::vector<StepState> steps_;
  std::vector<std::byte*> received_;  // by source: where a message lands before it is used; null: in place
  std::vector<TargetState> targets_;
  std::vector<PeerState> peers_;
  std::vector<kernels::Operand> operands_;
  std::vector<std::byte*> destinations_;
};

}  // namespace lockstep::comm
