// SPDX-License-Identifier: Apache-2.0
//
// Whether a member is alive: its process beats, and its work goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/elastic/message.h"

namespace lockstep::elastic {

using Time = std::chrono::nanoseconds;  // since any moment

// What is asked of a member beside its beats: nothing; to train, where it may wait for others, who have
// deadlines; to catch up with others (that have voted, want another place or are done), who wait for it
// without one, so that it may wait only so long; to come back from a generation that was lost, where nobody
// is left to wait for.
enum class Duty { none, train, catch_up, come_back };

struct LivenessLimits {
  Time beat_timeout;
  Time stall_timeout;
  Time wait_timeout;
};

class Liveness {
 public:
  explicit Liveness(Time now) : heard_(now), moved_(now) {}

  void hear(Time now) { heard_ = now; }
  void hear(const Beat& beat, Time now);
  // Its duty has changed: its work is looked at from now on.
  void renew(Time now) { moved_ = now; }

  Time deadline(Duty duty, const LivenessLimits& limits) const;
  // Why it is to be given up; nothing as long as its deadline has not passed.
  std::optional<std::string> failure(Duty duty, const LivenessLimits& limits, Time now) const;

 private:
  // How long it may stand still; none: without limit.
  std::optional<Time> patience(Duty duty, const LivenessLimits& limits) const;

  Time heard_;
  Time moved_;
  std::uint64_t progress_ = 0;
  bool waits_ = false;
};

}  // namespace lockstep::elastic
