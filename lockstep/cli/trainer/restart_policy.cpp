// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/restart_policy.h"

#include <algorithm>

namespace lockstep::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{500};
constexpr milliseconds kLongestWait{60'000};
constexpr int kMostDoublings = 10;

}  // namespace

std::optional<milliseconds> RestartPolicy::after_failure(std::int64_t saved_step, Time now) {
  while (!times_.empty() && now - times_.front() > std::chrono::seconds(elastic_.window_seconds)) {
    times_.pop_front();
  }
  if (restarts() >= elastic_.max_restarts) return std::nullopt;
  times_.push_back(now);
  without_progress_ = saved_step > saved_step_ ? 0 : without_progress_ + 1;
  saved_step_ = std::max(saved_step_, saved_step);
  if (without_progress_ == 0) return milliseconds(0);
  return std::min(kLongestWait, kFirstWait * (1 << std::min(without_progress_ - 1, kMostDoublings)));
}

}  // namespace lockstep::cli
