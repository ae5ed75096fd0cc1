// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// What checkpoints have cost so far.
struct SaveCost {
  double stall_seconds = 0;  // in which training waited for one
  double seconds = 0;        // until one was there
};

// How far apart checkpoints should be so that failures every `mtbf_seconds` cost the least: what Young and
// Daly give, sqrt(2 x cost x time between failures), but so that training waits at most 3.5 % of its time,
// and that checkpoints are written in half of it.
double best_interval_seconds(const SaveCost& cost, double mtbf_seconds);

// The last checkpoint that was begun, or what the run began with.
struct LastSave {
  std::int64_t step = 0;
  double seconds_ago = 0;
  std::optional<SaveCost> cost = std::nullopt;  // of the last good one
};

// Whether it is time for a checkpoint after `step`. By steps, as soon as a multiple of the interval has been
// reached since the last one; by time; or both, as [checkpoint] says; with interval = "auto" by
// best_interval_seconds(), the first time after a minute. Pure.
bool is_time_to_save(const spec::Checkpoint& checkpoint, std::int64_t step, const LastSave& last);

}  // namespace lockstep::train
