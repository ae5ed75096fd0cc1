// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::comm {

// A program with everything worked out that does not depend on buffers and peers, so that running it again
// costs as little as possible. Made once for each plan; immutable.
class Script {
 public:
  enum class Kind : std::uint8_t {
    send,     // local memory as it is
    receive,  // no arithmetic on the way: the channel may deliver it straight to its place
    combine,
  };
  // One operand of a step. Messages are numbered among those of their peer in the round.
  struct Source {
    Rank from = schedule::kLocal;
    std::uint32_t peer = 0;     // index among the round's peers
    std::uint32_t message = 0;  // number
    bool in_place = false;      // read where it arrives
    std::uint32_t spill = 0;    // else, for a combine: which spill of the round it waits in
  };
  struct Target {
    Rank to = 0;
    std::uint32_t peer = 0;
    std::uint32_t message = 0;
  };
  struct Step {
    const schedule::Move* move = nullptr;
    Kind kind = Kind::send;
    std::size_t elements = 0;
    std::uint32_t first_source = 0;  // index among the round's sources
    std::uint32_t first_target = 0;
  };
  // A rank that a round talks to, and how many messages each way.
  struct Peer {
    Rank rank = 0;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };
  struct Round {
    std::vector<Step> steps;
    std::vector<Source> sources;
    std::vector<Target> targets;
    std::vector<Peer> peers;
    std::uint32_t spills = 0;  // messages that wait for others of the same peer

    std::span<const Source> sources_of(const Step& step) const {
      return std::span(sources).subspan(step.first_source, step.move->sources.size());
    }
    std::span<const Target> targets_of(const Step& step) const {
      return std::span(targets).subspan(step.first_target, step.move->send_to.size());
    }
  };

  explicit Script(schedule::Program program);
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  const schedule::Program& program() const { return program_; }
  // Whether it receives anything. One that does not ends as soon as its messages are on their way.
  bool hears() const { return hears_; }
  const std::vector<Round>& rounds() const { return rounds_; }
  std::size_t moves() const;
  // The elements that each spill must have room for; rounds use the same ones.
  const std::vector<std::size_t>& spill_elements() const { return spill_elements_; }

 private:
  void append(Round& round, const schedule::Move& move);

  schedule::Program program_;  // steps point into it
  std::vector<Round> rounds_;
  std::vector<std::size_t> spill_elements_;
  bool hears_ = false;
};

}  // namespace lockstep::comm
