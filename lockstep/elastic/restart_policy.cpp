// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/restart_policy.h"

#include <algorithm>

namespace lockstep::elastic {
namespace {

using std::chrono::milliseconds;

constexpr int kMostDoublings = 10;

}  // namespace

std::optional<milliseconds> RestartPolicy::after_failure(bool has_trained, Clock::time_point now) {
  while (!times_.empty() && now - times_.front() > limits_.window) times_.pop_front();
  if (restarts() >= limits_.max_restarts) return std::nullopt;
  times_.push_back(now);
  without_training_ = has_trained ? 0 : without_training_ + 1;
  if (without_training_ == 0) return milliseconds(0);
  return std::min(limits_.longest_wait,
                  limits_.first_wait * (1 << std::min(without_training_ - 1, kMostDoublings)));
}

}  // namespace lockstep::elastic
