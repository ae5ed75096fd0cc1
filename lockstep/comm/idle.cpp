// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/idle.h"

#include <algorithm>
#include <chrono>

#include <poll.h>
#include <sched.h>

#include "lockstep/base/cpu.h"

namespace lockstep::comm {

void Idle::moved() {
  if (turns_ > 0) {
    const bool in_vain = turns_ > spin_turns_;
    spin_turns_ =
        in_vain ? std::max(kMinSpinTurns, spin_turns_ / 2) : std::min(kMaxSpinTurns, spin_turns_ * 2);
  }
  turns_ = 0;
}

bool Idle::pause(std::chrono::milliseconds at_most) {
  const std::uint32_t spin = crowded_ ? 0 : spin_turns_;
  if (turns_++ < spin) {
    cpu_pause();
    return false;
  }
  if (turns_ == spin + 1) yielding_since_ = Clock::now();
  const bool enough = crowded_ && turns_ > kCrowdedYieldTurns;
  if (enough || Clock::now() - yielding_since_ > kYieldTime) {
    sleep(at_most);
  } else {
    sched_yield();
  }
  return true;
}

void Idle::sleep(std::chrono::milliseconds at_most) {
  if (endpoint_.prepare_wait()) {
    pollfd descriptor{.fd = endpoint_.wait_fd(), .events = POLLIN, .revents = 0};
    poll(&descriptor, 1, static_cast<int>(at_most.count()));
  }
  endpoint_.finish_wait();
}

}  // namespace lockstep::comm
