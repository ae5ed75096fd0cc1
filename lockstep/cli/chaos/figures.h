// SPDX-License-Identifier: Apache-2.0
//
// What a disturbed run came to. Pure functions of what it left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/cli/bench/statistics.h"
#include "lockstep/cli/chaos/records.h"

namespace lockstep::cli {

// How the run took one fault.
struct FaultOutcome {
  FaultKind kind = FaultKind::kill;
  // From the fault until the coordinator knew that a worker was lost. None when nothing was lost: a worker
  // that went on in time, or that had no place.
  std::optional<double> noticed_s;
  // From the fault until the next step was decided.
  std::optional<double> recovered_s;
  bool operator==(const FaultOutcome&) const = default;
};

// Each loss belongs to the fault before it: to the newest of those whose victims are noticed at once, and
// otherwise to the oldest stop that nobody has noticed yet.
std::vector<FaultOutcome> outcomes_of(std::span<const InjectedFault> faults,
                                      std::span<const GenerationRecord> generations);

// Steps that were computed, wholly or in part, and had to be computed again.
struct Repeats {
  std::int64_t total = 0;
  std::int64_t most = 0;  // after one loss
  bool operator==(const Repeats&) const = default;
};
Repeats repeats_of(std::span<const InjectedFault> faults, std::span<const GenerationRecord> generations);

// Effective training time: of the first `window_s` seconds of training (until the last step of one that
// `has_ended` before), the
// share that went into steps that count and were never computed again. A step that is recorded more than once
// counts as it was recorded last.
struct Effective {
  double share = 0;
  double window_s = 0;
  std::int64_t steps = 0;  // that were done within it
};
// None for no steps.
std::optional<Effective> effective_time(std::span<const StepRecord> steps, double window_s, bool has_ended);

// How long training took until this step, from the beginning of the first; none when it is not recorded.
std::optional<double> time_until(std::span<const StepRecord> steps, std::int64_t step);

// The losses of a disturbed run against those of the undisturbed one: equal when all bits are. A step that is
// recorded more than once counts as it was recorded last.
struct LossComparison {
  std::int64_t steps = 0;      // that either has recorded
  std::int64_t different = 0;  // of these; also those that only one of them has
  std::optional<std::int64_t> first_different = std::nullopt;
  bool operator==(const LossComparison&) const = default;
};
LossComparison compare_losses(std::span<const StepRecord> disturbed, std::span<const StepRecord> undisturbed);

// Of those that have one; none when none has.
std::optional<Spread> spread_over(std::span<const FaultOutcome> outcomes,
                                  std::optional<double> FaultOutcome::*time,
                                  std::optional<FaultKind> kind = std::nullopt);

}  // namespace lockstep::cli
