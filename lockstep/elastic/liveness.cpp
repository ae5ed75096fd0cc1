// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/liveness.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep::elastic {
namespace {

double seconds(Time time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void Liveness::hear(const Beat& beat, Time now) {
  hear(now);
  // One that has waited until now has not stood still.
  if (beat.progress != progress_ || (waits_ && !beat.waits)) moved_ = now;
  progress_ = beat.progress;
  waits_ = beat.waits;
}

std::optional<Time> Liveness::patience(Duty duty, const LivenessLimits& limits) const {
  if (duty == Duty::none || (duty == Duty::train && waits_)) return std::nullopt;
  return duty == Duty::catch_up && waits_ ? limits.wait_timeout : limits.stall_timeout;
}

Time Liveness::deadline(Duty duty, const LivenessLimits& limits) const {
  const Time silent = heard_ + limits.beat_timeout;
  const std::optional<Time> patience = this->patience(duty, limits);
  return patience ? std::min(silent, moved_ + *patience) : silent;
}

std::optional<std::string> Liveness::failure(Duty duty, const LivenessLimits& limits, Time now) const {
  if (now < deadline(duty, limits)) return std::nullopt;
  if (now - heard_ >= limits.beat_timeout) {
    return fmt::format("nothing was heard of it for {:.1f} s", seconds(now - heard_));
  }
  if (duty == Duty::catch_up && waits_) {
    return fmt::format("it beats, but has waited for {:.1f} s for others, which wait for it",
                       seconds(now - moved_));
  }
  return fmt::format("it beats, but has not moved for {:.1f} s", seconds(now - moved_));
}

}  // namespace lockstep::elastic
