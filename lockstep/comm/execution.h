// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/rank.h"
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
  std::shared_ptr<const schedule::Program> program;  // shared with the cache of programs
  std::span<Port> ports;                             // by rank of the program; must outlive the execution
  std::span<std::byte* const> buffers;               // one for each buffer of the program, scratch included
  transport::Envelope envelope;
  kernels::Combination arithmetic;  // divide_by: what finished values are divided by
};

// Whom an execution waits for, and how far the transfer is.
struct Waiting {
  Rank peer = -1;
  std::size_t done_bytes = 0;
  std::size_t total_bytes = 0;
};

// Runs the program of one rank on its channels, step by step and without blocking. Executions that share
// ports run one after the other.
class Execution {
 public:
  // What the ports and buffers of the binding refer to must outlive this. Small vectors live in `memory`.
  Execution(Binding binding, std::pmr::memory_resource& memory);

  // Does what can be done now; true if anything moved. Throws what Channel throws.
  bool advance();

  bool done() const { return round_ == binding_.program->rounds.size(); }

  // Every message of this round that is not done. For a stalled execution.
  std::vector<Waiting> waiting() const;

  // After a failure: posted memory is not touched any more once this returns.
  void abandon();

 private:
  enum class Stage : std::uint8_t { waiting, fired, offered };

  // The state of a move of the current round. Indices point into the flat vectors below.
  struct MoveState {
    const schedule::Move* move = nullptr;
    std::size_t first_source = 0;
    std::size_t first_target = 0;
    std::size_t elements = 0;
    std::size_t elements_done = 0;
    Stage stage = Stage::waiting;
  };
  // A source of a move that comes from a peer.
  struct Incoming {
    std::uint64_t index = 0;  // among all messages received on the port
    std::byte* received =
        nullptr;  // set when the message lands in memory before it is used; null: read in place
  };
  // A peer that a move sends to.
  struct Outgoing {
    std::uint64_t index = 0;  // among all messages sent on the port
    Bytes landing = {};       // written in place while combining; empty: sent from the destination
    bool decided = false;     // whether to use the landing
    bool offered = false;
  };

  // A rank that this round talks to, and how many messages on its port must be done for the round to end.
  struct Peer {
    Rank rank = 0;
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
  };

  void start_round();
  Peer& peer_of_round(Rank rank);
  void post_receives(MoveState& state);
  bool advance_round();
  bool round_finished() const;
  bool fire(MoveState& state);
  bool fire_received(MoveState& state);
  bool combine_available(MoveState& state);
  std::size_t available(const MoveState& state);
  void decide_landings(const MoveState& state);
  bool all_received(const MoveState& state) const;
  bool offer(MoveState& state);
  bool may_offer(Rank peer, const Outgoing& outgoing) const;

  std::byte* address(const schedule::Slice& slice) const;
  std::size_t bytes(std::size_t elements) const { return elements * element_bytes_; }
  std::byte* spill(std::size_t bytes);

  Binding binding_;
  std::size_t element_bytes_;
  std::size_t round_ = 0;
  bool started_ = false;

  std::pmr::vector<MoveState> moves_;
  std::pmr::vector<Incoming> incoming_;
  std::pmr::vector<Outgoing> outgoing_;
  std::pmr::vector<Peer> peers_;
  std::pmr::vector<std::uint64_t> posted_to_;  // by rank: messages that exist, offered or not
  std::pmr::vector<kernels::Operand> operands_;
  std::pmr::vector<std::byte*> destinations_;
  std::vector<std::unique_ptr<std::byte[]>> spills_;
};

}  // namespace lockstep::comm
