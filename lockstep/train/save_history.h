// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/save_rule.h"

namespace lockstep::train {

// What a process knows of the checkpoints of a run, in all worlds that it was in. One that did not come to
// its end, because its world broke, is as if it had not begun: the next world makes it after its first step,
// or of the step that it begins behind, if it validates that.
struct SaveHistory {
  std::int64_t ended = 0;                       // good or not; what the run began with counts too
  std::int64_t step = 0;                        // of the last of them
  std::int64_t failures = 0;                    // of the last, in a row
  Clock::time_point last_began = Clock::now();  // of those that have ended; before, the run
  std::optional<SaveCost> cost = std::nullopt;  // of the last good one
};

// All ranks of `world` together: what those know who have seen the most becomes what all know.
void agree_on(SaveHistory& history, const comm::Communicator& world);

// All ranks of a world that have agreed: the run begins with the checkpoint of `step`, or anew (0).
void begin_from(SaveHistory& history, std::int64_t step);

}  // namespace lockstep::train
