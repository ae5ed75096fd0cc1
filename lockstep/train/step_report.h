// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/train/kept_state.h"
#include "lockstep/train/loss_scale.h"
#include "lockstep/train/phases.h"
#include "lockstep/train/stragglers.h"

namespace lockstep::train {

// What a step came to; the same on all ranks, except for the time.
struct StepReport {
  std::int64_t step = 0;  // counted from 1
  double loss = 0;        // mean over the step's tokens, in nats
  double gradient_norm = 0;
  double learning_rate = 0;
  double loss_scale = 1;
  bool updated = true;
  double seconds = 0;
  std::optional<PhaseTimes> times = std::nullopt;  // of this rank; none when the step is told again
  std::int64_t tokens = 0;
  std::optional<double> validation_loss = std::nullopt;
  std::vector<int> lanes = {};  // when they have moved after this step: how many each worker owns
  std::optional<SpeedReport> speed = std::nullopt;  // when the speeds of the ranks were compared
  std::string not_finite = {};  // when it was not updated: the first parameter whose gradient is not finite
};

// What a run had reached before a step.
struct BeforeStep {
  const checkpoint::Progress& progress;
  LossScale loss_scale;
  std::uint64_t samples_per_step = 0;
};

// What it has reached with it, and from that the step again, as far as it says; none when nobody knows. Pure.
Reached reached_with(const StepReport& report, const BeforeStep& before);
std::optional<StepReport> report_of(const Reached& reached, std::int64_t tokens);

}  // namespace lockstep::train
