// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/schedule/check/network.h"

namespace lockstep::schedule {

struct Progress {
  // All moves, in an order in which they can fire. With the rules of program.h any other possible order
  // leaves the same contents.
  std::vector<std::uint32_t> order;
  int depth = 0;  // see Cost::depth
};

struct ProgressResult {
  Progress progress;
  std::optional<Violation> violation;
};

// Plays the rounds as program.h defines them, with no buffering between ranks: a rank that cannot go on for
// ever is a violation. Firing is monotone, so one order decides for all.
ProgressResult check_progress(const Network& network);

}  // namespace lockstep::schedule
