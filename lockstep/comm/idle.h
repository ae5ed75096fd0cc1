// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// How a thread that has nothing to do waits for its peers: it spins for a while, because an answer usually
// comes within microseconds; then it offers its core at every turn, because the peer may be queued on it;
// then it sleeps. The spinning time follows experience: it grows while answers come during the spin and
// shrinks while they do not.
//
// Two ranks that sleep and wake each other on one core look like one busy thread to the scheduler, which then
// leaves the other core idle. While they yield, both are runnable, and it moves one of them.
class Idle {
 public:
  // `crowded`: more ranks than cores share this host; then nothing is spun away.
  Idle(transport::Endpoint& endpoint, bool crowded) : endpoint_(endpoint), crowded_(crowded) {}

  // Something moved: the next pause starts a new wait.
  void moved();

  // One turn of waiting; true if a noticeable time may have passed. Returns early when the endpoint may have
  // news.
  bool pause(std::chrono::milliseconds at_most);

 private:
  void sleep(std::chrono::milliseconds at_most);

  transport::Endpoint& endpoint_;  // outlives this
  bool crowded_;
  std::uint32_t turns_ = 0;  // of this wait
  Clock::time_point yielding_since_{};
  std::uint32_t spin_turns_ = kMaxSpinTurns;

  static constexpr std::uint32_t kMinSpinTurns = 16;
  static constexpr std::uint32_t kMaxSpinTurns = 1024;
  // Beside other busy threads a single yield can take a time slice.
  static constexpr std::chrono::microseconds kYieldTime{500};
  static constexpr std::uint32_t kCrowdedYieldTurns = 16;
};

}  // namespace lockstep::comm
