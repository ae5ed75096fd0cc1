// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace lockstep {

using Clock = std::chrono::steady_clock;

// The instant by which a blocking call must have returned. Never wall-clock time.
class Deadline {
 public:
  // A negative duration counts as none; one beyond the clock's range ends with the clock.
  static Deadline after(std::chrono::nanoseconds duration) {
    return Deadline(Clock::now(), std::max(duration, std::chrono::nanoseconds(0)));
  }

  bool passed() const { return Clock::now() >= end_; }

  // Never negative.
  std::chrono::nanoseconds left() const {
    return std::max<std::chrono::nanoseconds>(end_ - Clock::now(), std::chrono::nanoseconds(0));
  }

  // Since the deadline was set.
  std::chrono::nanoseconds waited() const { return Clock::now() - start_; }

  Clock::time_point end() const { return end_; }

 private:
  Deadline(Clock::time_point start, std::chrono::nanoseconds duration)
      : start_(start),
        end_(duration > Clock::time_point::max() - start ? Clock::time_point::max() : start + duration) {}

  Clock::time_point start_;
  Clock::time_point end_;
};

}  // namespace lockstep
