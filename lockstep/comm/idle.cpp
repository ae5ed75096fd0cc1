// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/idle.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sched.h>

#include "lockstep/base/cpu.h"

namespace lockstep::comm {

void Idle::moved() {
  if (waiting_) {
    spin_turns_ =
        slept_ ? std::max(kMinSpinTurns, spin_turns_ / 2) : std::min(kMaxSpinTurns, spin_turns_ * 2);
  }
  waiting_ = false;
  slept_ = false;
  turns_ = 0;
}

void Idle::pause(std::chrono::milliseconds at_most) {
  if (!waiting_) {
    waiting_ = true;
    since_ = now_ = Clock::now();
  }
  const std::uint32_t limit = crowded_ ? kCrowdedTurns : spin_turns_;
  if (++turns_ < limit) {
    if (crowded_) {
      sched_yield();
    } else {
      cpu_pause();
    }
    if (turns_ % kTurnsPerLook == 0) now_ = Clock::now();
    return;
  }
  sleep(at_most);
  now_ = Clock::now();
}

Clock::duration Idle::quiet() const {
  return waiting_ ? now_ - since_ : Clock::duration::zero();
}

void Idle::sleep(std::chrono::milliseconds at_most) {
  slept_ = true;
  if (endpoint_.prepare_wait()) {
    pollfd descriptor{.fd = endpoint_.wait_fd(), .events = POLLIN, .revents = 0};
    poll(&descriptor, 1, static_cast<int>(at_most.count()));
  }
  endpoint_.finish_wait();
}

}  // namespace lockstep::comm
