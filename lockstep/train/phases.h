// SPDX-License-Identifier: Apache-2.0
//
// What a rank does with its time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "lockstep/schedule/step/step.h"

namespace lockstep::train {

// Of these a rank does all by itself, except for communication: there it waits for others, and they for it.
enum class Phase : std::size_t { data, forward, backward, update, checkpoint, other, communication };
inline constexpr std::array kPhases = {Phase::data,       Phase::forward, Phase::backward,     Phase::update,
                                       Phase::checkpoint, Phase::other,   Phase::communication};
std::string_view name_of(Phase phase);

// To which an action of a step counts. The data of a micro-batch are read inside of `forward`.
Phase phase_of(schedule::Act act);

// Whether a phase takes twice as long with twice as many lanes.
bool grows_with_lanes(Phase phase);

// The seconds of one rank, by phase. Goes from rank to rank as its bytes.
struct PhaseTimes {
  std::array<double, kPhases.size()> seconds{};
  double lanes = 0;  // that were computed, those of each step counted again

  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  PhaseTimes& operator+=(const PhaseTimes& more);

  double busy() const;       // with everything but communication
  double computing() const;  // of lanes
};

// So many seconds in one phase, and nothing else.
PhaseTimes in_phase(Phase phase, double seconds);

}  // namespace lockstep::train
