// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <span>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::train {

// One moment, by the clock of this rank.
struct CommonInstant {
  Clock::time_point here;
  // How far it can be from what rank 0 means; zero on its host, whose processes have one clock.
  std::chrono::nanoseconds error{0};
};

// The moment at which rank 0 came here; all ranks call it together. Between hosts it is as exact as half of
// the shortest of some round trips between them. Clocks of hosts drift apart later, by tens of microseconds
// in a second where nothing keeps them together.
CommonInstant common_instant(const comm::Communicator& world);

// A question to a rank with another clock, and its answer.
struct ClockQuestion {
  Clock::time_point asked;
  Clock::time_point answered;  // by the other clock
  Clock::time_point heard;
};

struct ClockOffset {
  std::chrono::nanoseconds ahead{0};  // so far the other clock is ahead of this one
  std::chrono::nanoseconds error{0};  // to either side, at most
};

// By the question that was answered soonest; at least one.
ClockOffset clock_offset(std::span<const ClockQuestion> questions);

}  // namespace lockstep::train
