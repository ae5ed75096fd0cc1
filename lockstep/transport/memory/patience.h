// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "lockstep/base/deadline.h"

namespace lockstep::transport {

// How long an endpoint that abandons its channels waits for peers that are writing into its memory: channels
// abandoned right after one another share one patience, so that many frozen peers cost little more than one.
class WritingPatience {
 public:
  // For the channel that is abandoned now.
  Deadline begin() {
    const Clock::time_point now = Clock::now();
    if (now > shared_end_ + kPause) shared_end_ = now + kShared;
    return Deadline::after(std::max<std::chrono::nanoseconds>(shared_end_ - now, kEach));
  }

 private:
  static constexpr std::chrono::milliseconds kShared{200};  // much more than writing a long message takes
  static constexpr std::chrono::milliseconds kEach{5};      // for those whose turn comes late
  static constexpr std::chrono::milliseconds kPause{100};   // after it, a new patience begins

  Clock::time_point shared_end_{};
};

}  // namespace lockstep::transport
