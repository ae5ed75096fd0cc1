// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

// Whether workers that have failed are started again, and after how long: at once when the run has come
// further since they failed before, otherwise after a time that doubles, and never more than
// elastic.max_restarts times within elastic.window_seconds.
class RestartPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RestartPolicy(const spec::Elastic& elastic) : elastic_(elastic) {}

  // After a failure, when `saved_step` is the newest step to go on from. None: no more.
  std::optional<std::chrono::milliseconds> after_failure(std::int64_t saved_step, Time now);

  std::int64_t restarts() const { return static_cast<std::int64_t>(times_.size()); }  // inside the window

 private:
  spec::Elastic elastic_;
  std::deque<Time> times_;  // of restarts inside the window
  std::int64_t saved_step_ = -1;
  int without_progress_ = 0;  // failures in a row
};

}  // namespace lockstep::cli
