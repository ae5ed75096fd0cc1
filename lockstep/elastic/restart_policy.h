// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "lockstep/base/deadline.h"

namespace lockstep::elastic {

struct RestartLimits {
  std::size_t max_restarts = 10;  // of one worker within `window`
  std::chrono::seconds window{3600};
  std::chrono::milliseconds first_wait{500};
  std::chrono::milliseconds longest_wait{60'000};
};

// Whether one worker that has failed is started again, and after how long: at once when it had trained,
// otherwise after a time that doubles with each such failure in a row, and never more often than the limits
// say.
class RestartPolicy {
 public:
  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  // None: it is given up.
  std::optional<std::chrono::milliseconds> after_failure(bool has_trained, Clock::time_point now);

  std::size_t restarts() const { return times_.size(); }  // inside the window

 private:
  RestartLimits limits_;
  std::deque<Clock::time_point> times_;  // of restarts inside the window
  int without_training_ = 0;             // failures in a row
};

}  // namespace lockstep::elastic
